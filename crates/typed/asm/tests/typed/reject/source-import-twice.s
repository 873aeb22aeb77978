# expect: `log` is declared in line 3 already
# A name has one meaning.
.import log 1 ()
.import log 2 ()
.func f ()
        .return
