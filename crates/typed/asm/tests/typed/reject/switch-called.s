# expect: expected an entry of a call or jump table
# A place in the function is not called.
.func f (any, any)
        cmp     $0x6000, %sp
        jb      out
        and     $1, %edi
        lea     jt(%rip), %rcx
        movslq  (%rcx,%rdi,4), %rax
        add     %rcx, %rax
        call    __x86_indirect_thunk_rax
one:    nop
two:    nop
out:    .return
.jumptable jt: one, two
