# Two calls give two views: an index belongs to one of them, so there are two of the same value.
.import packet 0x8000 (any) -> view
.func same (any) -> any frame 16
        push    %rbx
        push    %rbp
        cmp     $0x5000, %sp
        jb      no
        call    packet
        mov     %rax, %rbx
        mov     %rdx, %rbp
        xor     %edi, %edi
        call    packet
        xor     %ecx, %ecx
.head rcx: u32, rdi: unknown, rsi: unknown
more:   cmp     %rdx, %rcx
        jae     yes
        lea     (%rcx), %rsi
        cmp     %rbp, %rsi
        jae     yes
        movzbl  (%rax,%rcx), %edi
        cmp     (%rbx,%rsi), %dil
        jne     no
        inc     %ecx
        jmp     more
yes:    mov     $1, %eax
        jmp     out
no:     xor     %eax, %eax
out:    pop     %rbp
        pop     %rbx
        .return
