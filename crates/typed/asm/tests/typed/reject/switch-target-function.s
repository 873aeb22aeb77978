# expect: no instruction, function or stub
# A target is another function.
.func f (any)
        and     $1, %edi
        lea     jt(%rip), %rcx
        movslq  (%rcx,%rdi,4), %rax
        add     %rcx, %rax
        jmp     __x86_indirect_thunk_rax
one:    .return
.jumptable jt: one, g
.func g ()
        .return
