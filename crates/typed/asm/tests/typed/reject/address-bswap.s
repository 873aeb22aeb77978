# expect: read of 1 bytes
# bswap brings low bytes up.
.func f (any, any)
        mov     %edi, %edi
        bswap   %rdi
        movzbl  0x10000000(%rdi), %eax
        .return
