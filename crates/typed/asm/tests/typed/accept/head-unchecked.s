# The depth of the stack is checked in the loop.
.func f (any) frame 8
        push    %rbx
        mov     %edi, %ebx
.head rbx: u32, rax: unknown, rcx: unknown, rdx: unknown, rsi: unknown, rdi: unknown, r8: unknown, r9: unknown, r10: unknown, r11: unknown, unchecked
again:  cmp     $0x5000, %sp
        jb      out
        call    g
        dec     %ebx
        jne     again
out:    pop     %rbx
        .return
.func g ()
        .return
