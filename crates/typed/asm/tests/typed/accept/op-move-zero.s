# movzx from one and two bytes.
.func f (any, any)
        movzbl  %dil, %eax
        movzbw  %dil, %ax
        movzbq  %dil, %rax
        movzwl  %di, %eax
        movzwq  %di, %rax
        movzbl  0x10000000(%rax), %ecx
        movzwl  0x10000000(%rax), %ecx
        movzbl  %ch, %edx
        .return
