# expect: head 0x.*, rax: expected entry of call table
# The head claims an entry.
.func f (any, u32)
        mov     %rdi, %rax
.head rax: entry of t
again:  test    %esi, %esi
        jne     again
        jmp     __x86_indirect_thunk_rax
.calltable t (): g
.func g ()
        .return
