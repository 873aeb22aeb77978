# expect: expected a check of the stack
# A call needs a check of the stack.
.func f (any, any)
        call    g
        .return
.func g ()
        .return
