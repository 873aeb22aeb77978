# The region's start in a register.
.func f (any, any)
        mov     $0x10000000, %eax
        mov     %edi, %edi
        mov     (%rax,%rdi), %rcx
        lea     (%rax,%rdi), %rdx
        mov     %rcx, 8(%rdx)
        .return
