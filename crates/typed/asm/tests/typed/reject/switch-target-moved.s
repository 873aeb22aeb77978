# expect: expected an entry of a call or jump table
# A target plus something is no target.
.func f (any, any)
        and     $1, %edi
        lea     jt(%rip), %rcx
        movslq  (%rcx,%rdi,4), %rax
        add     %rcx, %rax
        add     $1, %rax
        jmp     __x86_indirect_thunk_rax
one:    nop
two:    .return
.jumptable jt: one, two
