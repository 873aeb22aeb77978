# The thunk of an indirect jump has room to push at the deepest stack that needs no check.
.func f (any) -> any frame 3824
        sub     $3824, %rsp
        cmp     $1, %rdi
        ja      out
        lea     jt(%rip), %rcx
        movslq  (%rcx,%rdi,4), %rax
        add     %rcx, %rax
        jmp     __x86_indirect_thunk_rax
one:    nop
out:    xor     %eax, %eax
        add     $3824, %rsp
        .return
.jumptable jt: one, out
