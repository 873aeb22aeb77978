# push and pop of registers, immediates and memory.
.func f (any, any) frame 48
        push    %rbx
        push    $5
        push    $0x12345678
        push    0x10000000
        push    8(%rsp)
        push    %r12
        pop     %r12
        pop     %rax
        pop     %rcx
        pop     %rdx
        pop     %r8
        pop     %rbx
        mov     %rax, 0x10000000
        mov     %rcx, 0x10000000
        mov     %rdx, 0x10000000
        mov     %r8, 0x10000000
        .return
