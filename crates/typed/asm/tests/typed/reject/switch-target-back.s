# expect: jump back to .* which has no annotation
# A target behind needs a head.
.func f (any, any)
        nop
one:    and     $1, %edi
        lea     jt(%rip), %rcx
        movslq  (%rcx,%rdi,4), %rax
        add     %rcx, %rax
        jmp     __x86_indirect_thunk_rax
two:    .return
.jumptable jt: one, two
