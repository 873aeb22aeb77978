# cmovcc of each condition, from registers and memory.
.func f (any, any)
        mov     %rdi, %rax
        cmp     %rsi, %rdi
        cmovo   %rsi, %rax
        cmovno  %rsi, %rax
        cmovb   %rsi, %rax
        cmovae  %rsi, %rax
        cmove   %rsi, %rax
        cmovne  %rsi, %rax
        cmovbe  %rsi, %rax
        cmova   %rsi, %rax
        cmovs   %rsi, %rax
        cmovns  %rsi, %rax
        cmovp   %rsi, %rax
        cmovnp  %rsi, %rax
        cmovl   %rsi, %rax
        cmovge  %rsi, %rax
        cmovle  %rsi, %rax
        cmovg   %rsi, %rax
        cmovb   %esi, %eax
        cmovb   %si, %ax
        cmove   0x10000000, %rax
        cmove   0x10000000, %ecx
        mov     %rax, 0x10000000
        .return
