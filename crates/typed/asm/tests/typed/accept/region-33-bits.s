# The sum of two indices has 33 bits.
.func f (any, any)
        mov     %edi, %edi
        mov     %esi, %esi
        add     %rsi, %rdi
        movzbl  0x10000000(%rdi), %eax
        .return
