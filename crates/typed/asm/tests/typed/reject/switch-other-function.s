# expect: expected an entry of a call or jump table
# The table belongs to another function.
.func f (any)
        and     $1, %edi
        lea     jt(%rip), %rcx
        movslq  (%rcx,%rdi,4), %rax
        add     %rcx, %rax
        jmp     __x86_indirect_thunk_rax
one:    nop
two:    .return
.func g ()
        .return
.jumptable jt: one, two
