# A head into which nothing flows says that the stack is checked there.
.func f (any) frame 8
        push    %rbx
        mov     %edi, %ebx
        cmp     $0x5000, %sp
        jae     test
        pop     %rbx
        .return
.head rsp: stack-8, [stack-8]: saved rbx, rbx: u32, rax: unknown, rcx: unknown, rdx: unknown, rsi: unknown, rdi: unknown, r8: unknown, r9: unknown, r10: unknown, r11: unknown, checked: stack-264
again:  call    g
        dec     %ebx
test:   test    %ebx, %ebx
        jne     again
        pop     %rbx
        .return
.func g ()
        .return
