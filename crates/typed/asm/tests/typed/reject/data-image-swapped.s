# expect: expected \d+ bytes of data, found
# A byte-swapped address is no data.
.func f (any, any)
        lea     f(%rip), %rax
        bswap   %rax
        mov     %rax, 0x10000000
        .return
