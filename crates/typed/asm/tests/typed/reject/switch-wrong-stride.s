# expect: expected an entry of a call or jump table|read of 4
# The index is no multiple of 4.
.func f (any, any)
        and     $1, %edi
        lea     jt(%rip), %rcx
        movslq  (%rcx,%rdi,2), %rax
        add     %rcx, %rax
        jmp     __x86_indirect_thunk_rax
one:    nop
two:    .return
.jumptable jt: one, two
