# expect: read of 8 bytes.*stack-8
# Nothing is below the stack pointer.
.func f (any, any)
        mov     -8(%rsp), %rax
        .return
