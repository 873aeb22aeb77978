# expect: code before the first .func
# Code belongs to a function.
        nop
.func f ()
        .return
