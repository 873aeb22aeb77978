# expect: expected \d+ bytes of data, found
# A distance is followed as such, and is no data.
.func f (any, any)
        and     $1, %edi
        lea     jt(%rip), %rcx
        movslq  (%rcx,%rdi,4), %rax
        mov     %rax, 0x10000000
one:    nop
two:    .return
.jumptable jt: one, two
