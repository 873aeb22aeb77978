# expect: head 0x.*stack-8
# Nothing flows in from above; the slot was not written.
.func f (any, u32) frame 8
        push    %rbx
        jmp     entry
.head [stack-8]: any
again:  mov     (%rsp), %rax
        mov     %rax, 0x10000000
entry:  test    %esi, %esi
        jne     again
        mov     (%rsp), %rbx
        lea     8(%rsp), %rsp
        .return
