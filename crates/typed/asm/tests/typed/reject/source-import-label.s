# expect: `log` is a label as well
# A name has one meaning.
.import log 1 ()
.func f ()
        .return
.func log ()
        .return
