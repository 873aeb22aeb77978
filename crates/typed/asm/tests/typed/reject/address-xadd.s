# expect: read of 1 bytes
# xadd leaves a 64-bit sum.
.func f (any, any)
        mov     %edi, %edi
        xadd    %rsi, %rdi
        movzbl  0x10000000(%rdi), %eax
        .return
