# expect: read of 1 bytes
# adc of 64 bits is any number.
.func f (any, any)
        mov     %edi, %edi
        mov     %esi, %esi
        cmp     %esi, %edi
        adc     %rsi, %rdi
        movzbl  0x10000000(%rdi,%rdi,8), %eax
        .return
