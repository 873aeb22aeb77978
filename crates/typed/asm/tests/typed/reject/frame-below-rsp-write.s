# expect: write of 8 bytes.*stack-8
# The red zone is the interrupt's.
.func f (any, any)
        mov     %rdi, -8(%rsp)
        .return
