# expect: expected an entry of a call or jump table
# The distance is read without its sign.
.func f (any, any)
        and     $1, %edi
        lea     jt(%rip), %rcx
        mov     (%rcx,%rdi,4), %eax
        add     %rcx, %rax
        jmp     __x86_indirect_thunk_rax
one:    nop
two:    .return
.jumptable jt: one, two
