# expect: expected \d+ bytes of data, found
# The number of an address's first bit is no data.
.func f (any, any)
        lea     f(%rip), %rax
        bsf     %rax, %rax
        mov     %rax, 0x10000000
        .return
