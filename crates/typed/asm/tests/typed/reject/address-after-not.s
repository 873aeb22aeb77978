# expect: read of 1 bytes
# Not of a 64-bit register sets the upper bits.
.func f (any, any)
        mov     %edi, %edi
        not     %rdi
        movzbl  0x10000000(%rdi), %eax
        .return
