# expect: expected a check of the stack
# An import needs a check too.
.import log 1 ()
.func f ()
        call    log
        .return
