# movsx from one, two and four bytes.
.func f (any, any)
        movsbl  %dil, %eax
        movsbw  %dil, %ax
        movsbq  %dil, %rax
        movswl  %di, %eax
        movswq  %di, %rax
        movslq  %edi, %rax
        movsbl  0x10000000, %ecx
        movswq  0x10000000, %rcx
        movslq  0x10000000, %rcx
        mov     %rcx, 0x10000000
        .return
