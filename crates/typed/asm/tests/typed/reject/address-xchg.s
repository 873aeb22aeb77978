# expect: read of 1 bytes
# xchg brings the 64-bit number.
.func f (any, any)
        mov     %edi, %edi
        xchg    %rsi, %rdi
        movzbl  0x10000000(%rdi), %eax
        .return
