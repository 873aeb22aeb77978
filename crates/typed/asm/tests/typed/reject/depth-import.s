# expect: expected a stack checked
# An import needs a check too.
.import log 1 ()
.func f ()
        call    log
        .return
