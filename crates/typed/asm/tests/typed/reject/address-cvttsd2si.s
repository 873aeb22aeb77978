# expect: read of 1 bytes
# A conversion to 64 bits is any number.
.func f (any, any)
        cvttsd2si %xmm0, %rax
        movzbl  0x10000000(%rax), %eax
        .return
