# expect: expected an entry of a call or jump table
# The distance is added to another address.
.func f (any, any)
        and     $1, %edi
        lea     jt(%rip), %rcx
        movslq  (%rcx,%rdi,4), %rax
        lea     jt+4(%rip), %rcx
        add     %rcx, %rax
        jmp     __x86_indirect_thunk_rax
one:    nop
two:    .return
.jumptable jt: one, two
