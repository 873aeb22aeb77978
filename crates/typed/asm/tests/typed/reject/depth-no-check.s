# expect: expected a stack checked
# A call needs a check of the stack.
.func f (any, any)
        call    g
        .return
.func g ()
        .return
