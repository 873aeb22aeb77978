# bsf and bsr.
.func f (any, any)
        mov     %rdi, %rax
        bsf     %rdi, %rax
        bsr     %edi, %eax
        bsf     %di, %ax
        bsf     0x10000000, %rax
        mov     %rax, 0x10000000
        .return
