# expect: rsp: expected
# The stack pointer is no number.
.func f (any, any)
        mov     %rdi, %rsp
        .return
