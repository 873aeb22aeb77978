# expect: head 0x.*, rax: expected target of jump table
# The head claims a target.
.func f (any, u32)
        mov     %rdi, %rax
.head rax: target of jt
again:  test    %esi, %esi
        jne     again
        jmp     __x86_indirect_thunk_rax
one:    .return
.jumptable jt: one
        .return
