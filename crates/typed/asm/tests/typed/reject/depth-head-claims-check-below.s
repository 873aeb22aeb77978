# expect: expected a checked stack as there
# Nothing flows in from above, and the jump back comes without a check.
.func f (any) frame 8
        push    %rbx
        mov     %edi, %ebx
        jmp     test
.head rax: unknown, rcx: unknown, rdx: unknown, rsi: unknown, rdi: unknown, r8: unknown, r9: unknown, r10: unknown, r11: unknown, checked: stack-8
again:  call    g
test:   dec     %ebx
        jne     again
        pop     %rbx
        .return
.func g ()
        .return
