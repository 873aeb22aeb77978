# expect: rsp: expected
# The stack pointer comes from nowhere else.
.func f (any, any)
        mov     0x10000000, %rsp
        .return
