# expect: expected a stack checked
# The call is on the side of the short stack.
.func f (any, any)
        cmp     $0x6000, %sp
        jae     out
        call    g
out:    .return
.func g ()
        .return
