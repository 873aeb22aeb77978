# Views, lengths and indices are kept in callee-saved registers and in the frame across calls.
.import packet 0x8000 (any) -> view
.import log 1 (any)
.func f (any) -> any frame 32
        push    %rbx
        sub     $24, %rsp
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     %rax, %rbx
        mov     %rdx, 8(%rsp)
        mov     0x10000000, %edi
        mov     %edi, %ecx
        cmp     8(%rsp), %rcx
        jae     out
        mov     %rcx, 16(%rsp)
        call    log
        mov     16(%rsp), %rcx
        movzbl  (%rbx,%rcx), %eax
        add     $24, %rsp
        pop     %rbx
        .return
out:    xor     %eax, %eax
        add     $24, %rsp
        pop     %rbx
        .return
