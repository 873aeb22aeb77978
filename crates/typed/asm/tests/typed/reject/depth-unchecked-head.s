# expect: expected a check of the stack
# The head says that the depth is not checked.
.func f (any) frame 8
        push    %rbx
        mov     %edi, %ebx
        cmp     $0x6000, %sp
        jb      out
.head rbx: u32, rax: unknown, rcx: unknown, rdx: unknown, rsi: unknown, rdi: unknown, r8: unknown, r9: unknown, r10: unknown, r11: unknown, unchecked
again:  call    g
        sub     $1, %ebx
        jne     again
out:    pop     %rbx
        .return
.func g ()
        .return
