# A comparison bounds an index of 64 bits.
.func f (any, any)
        cmp     $1000, %rdi
        jae     out
        movzbl  0x10000000(%rdi), %eax
out:    nop
        .return
