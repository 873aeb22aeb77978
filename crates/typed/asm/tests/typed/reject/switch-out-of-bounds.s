# expect: expected an entry of a call or jump table|read of 4 bytes
# The index passes the table.
.func f (any, any)
        cmp     $3, %rdi
        ja      out
        lea     jt(%rip), %rcx
        movslq  (%rcx,%rdi,4), %rax
        add     %rcx, %rax
        jmp     __x86_indirect_thunk_rax
one:    nop
two:    nop
out:    .return
.jumptable jt: one, two, one
