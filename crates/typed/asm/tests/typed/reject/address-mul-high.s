# expect: read of 1 bytes
# The upper half of a product is any number.
.func f (any, any)
        mov     %rdi, %rax
        mul     %rsi
        movzbl  0x10000000(%rdx), %eax
        .return
