# expect: read of 1 bytes
# A quotient of 64 bits is any number.
.func f (any, any)
        mov     %rdi, %rax
        xor     %edx, %edx
        div     %rsi
        movzbl  0x10000000(%rax), %eax
        .return
