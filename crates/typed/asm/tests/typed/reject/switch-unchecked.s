# expect: read of 4 bytes|expected an entry
# The index is not compared.
.func f (any, any)
        lea     jt(%rip), %rcx
        movslq  (%rcx,%rdi,4), %rax
        add     %rcx, %rax
        jmp     __x86_indirect_thunk_rax
one:    nop
two:    .return
.jumptable jt: one, two
