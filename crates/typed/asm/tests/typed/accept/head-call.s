# A call in a loop.
.func f (any) frame 8
        push    %rbx
        mov     %edi, %ebx
        cmp     $0x5000, %sp
        jb      out
.head rbx: u32, rax: unknown, rcx: unknown, rdx: unknown, rsi: unknown, rdi: unknown, r8: unknown, r9: unknown, r10: unknown, r11: unknown
again:  mov     %ebx, %edi
        call    g
        dec     %ebx
        jne     again
out:    pop     %rbx
        .return
.func g (u32)
        .return
