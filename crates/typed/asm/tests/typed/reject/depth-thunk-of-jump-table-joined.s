# expect: :13: .*Jump: rsp: expected a known multiple of 8
# The thunk of an indirect jump pushes; where two heights of the stack meet, it is not known where.
.func f (any, any) -> any frame 3832
        lea     jt(%rip), %rcx
        cmp     $1, %rdi
        ja      out
        sub     $3824, %rsp
        test    %rsi, %rsi
        je      less
        sub     $8, %rsp
less:   movslq  (%rcx,%rdi,4), %rax
        add     %rcx, %rax
        jmp     __x86_indirect_thunk_rax
one:    ud2
out:    ud2
.jumptable jt: one, out
