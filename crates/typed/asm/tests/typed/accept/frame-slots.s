# Slots keep numbers, addresses and saved registers.
.func f (any, any) frame 40
        push    %rbx
        push    %r12
        sub     $24, %rsp
        mov     %rdi, (%rsp)
        lea     8(%rsp), %rbx
        mov     %rsi, (%rbx)
        mov     %rbx, 16(%rsp)
        mov     16(%rsp), %rcx
        mov     (%rcx), %rax
        add     (%rsp), %rax
        mov     %rax, 0x10000000
        add     $24, %rsp
        pop     %r12
        pop     %rbx
        .return
