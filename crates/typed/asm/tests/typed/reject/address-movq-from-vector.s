# expect: read of 1 bytes
# movq brings 64 bits.
.func f (any, any)
        movq    %xmm0, %rax
        movzbl  0x10000000(%rax), %eax
        .return
