# expect: read of 1 bytes
# A difference can be negative.
.func f (any, any)
        mov     %edi, %edi
        mov     %esi, %esi
        sub     %rsi, %rdi
        movzbl  0x10000000(%rdi), %eax
        .return
