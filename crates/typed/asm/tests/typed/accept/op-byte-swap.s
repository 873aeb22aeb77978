# bswap of four and eight bytes.
.func f (any, any)
        bswap   %rdi
        bswap   %edi
        mov     %rdi, 0x10000000
        .return
