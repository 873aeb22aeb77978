# expect: middle of an instruction
# A target is in the middle of an instruction.
.func f (any, any)
        and     $3, %edi
        lea     jt(%rip), %rcx
        movslq  (%rcx,%rdi,4), %rax
        add     %rcx, %rax
        jmp     __x86_indirect_thunk_rax
one:    mov     $1, %eax
two:    .return
.jumptable jt: one, one + 1, two, two
