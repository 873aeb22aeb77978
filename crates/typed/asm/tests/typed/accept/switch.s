# A jump table whose index was compared.
.func f (any) -> any
        cmp     $3, %rdi
        ja      other
        lea     jt(%rip), %rcx
        movslq  (%rcx,%rdi,4), %rax
        add     %rcx, %rax
        jmp     __x86_indirect_thunk_rax
one:    mov     $1, %eax
        .return
two:    mov     $2, %eax
        .return
other:  xor     %eax, %eax
        .return
.jumptable jt: one, two, one, other
