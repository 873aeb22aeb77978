# What a head that nothing flows into says of each place.
.func f (u32, u32) frame 16
        push    %rbx
        push    %r12
        lea     data(%rip), %rbx
        mov     t(%rip), %r12
        lea     8(%rsp), %rax
        jmp     test
.head rax: stack-8, rbx: address of data, r12: entry of t, [stack-8]: saved rbx, [stack-16]: saved r12, rdi: [0, 0xffffffff], rsi: u32
again:  mov     (%rbx), %ecx
        mov     %ecx, 0x10000000(%rdi)
        mov     (%rax), %rcx
test:   dec     %esi
        jne     again
        pop     %r12
        pop     %rbx
        .return
.calltable t (): g
.func g ()
        .return
.section .rodata
data:   .long   7
