# A conditional move bounds an index.
.func f (any, any)
        mov     $100, %eax
        cmp     %rax, %rdi
        cmova   %rax, %rdi
        movzbl  0x10000000(%rdi), %eax
        .return
