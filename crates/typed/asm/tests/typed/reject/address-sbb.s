# expect: read of 1 bytes
# sbb r, r is all ones or zero.
.func f (any, any)
        cmp     %rsi, %rdi
        sbb     %rax, %rax
        movzbl  0x10000000(%rax), %eax
        .return
