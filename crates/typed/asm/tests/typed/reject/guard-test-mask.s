# expect: read of 1 bytes
# test with another register bounds nothing.
.func f (any, any)
        test    %rsi, %rdi
        jne     out
        movzbl  0x10000000(%rdi), %eax
out:    nop
        .return
