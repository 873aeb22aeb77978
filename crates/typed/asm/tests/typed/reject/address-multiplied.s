# expect: read of 1 bytes
# A product of two 32-bit numbers has 64 bits.
.func f (any, any)
        mov     %edi, %edi
        mov     %esi, %esi
        imul    %rsi, %rdi
        movzbl  0x10000000(%rdi), %eax
        .return
