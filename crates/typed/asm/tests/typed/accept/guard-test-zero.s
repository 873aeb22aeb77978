# test and branch on zero.
.func f (any, any)
        test    %rdi, %rdi
        jne     out
        movzbl  0x10000000(%rdi), %eax
out:    nop
        .return
