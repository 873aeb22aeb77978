# expect: expected a stack checked
# The thunk of an indirect jump pushes below the deepest stack that needs no check.
.func f (any) -> any frame 3832
        sub     $3832, %rsp
        cmp     $1, %rdi
        ja      out
        lea     jt(%rip), %rcx
        movslq  (%rcx,%rdi,4), %rax
        add     %rcx, %rax
        jmp     __x86_indirect_thunk_rax
one:    nop
out:    xor     %eax, %eax
        add     $3832, %rsp
        .return
.jumptable jt: one, out
