# expect: expected a checked stack as there
# The head says that the stack is checked, but what flows in is not.
.func f (any) frame 8
        push    %rbx
        mov     %edi, %ebx
.head rbx: u32, rax: unknown, rcx: unknown, rdx: unknown, rsi: unknown, rdi: unknown, r8: unknown, r9: unknown, r10: unknown, r11: unknown, checked: stack-8
again:  call    g
        sub     $1, %ebx
        jne     again
        pop     %rbx
        .return
.func g ()
        .return
