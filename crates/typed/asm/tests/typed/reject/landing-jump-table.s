# expect: endbr64
# A place of a jump table has no endbr64.
# host: tracking
.func f (any)
        endbr64
        and     $1, %edi
        lea     jt(%rip), %rcx
        movslq  (%rcx,%rdi,4), %rax
        add     %rcx, %rax
        jmp     __x86_indirect_thunk_rax
one:    endbr64
        .return
two:    .return
.jumptable jt: one, two
