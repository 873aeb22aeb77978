# An indirect jump of the program's own.
.indirect
.func f (any) -> any
        and     $1, %edi
        lea     jt(%rip), %rcx
        movslq  (%rcx,%rdi,4), %rax
        add     %rcx, %rax
        jmp     *%rax
one:    mov     $1, %eax
        .return
two:    mov     $2, %eax
        .return
.jumptable jt: one, two
