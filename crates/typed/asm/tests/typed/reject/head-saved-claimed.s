# expect: head 0x.*, rax: expected saved rbx
# The head claims a saved register.
.func f (any, u32)
.head rax: saved rbx
again:  mov     %rax, %rbx
        test    %esi, %esi
        jne     again
        .return
