# expect: expected \d+ bytes of data, found
# The number of bits of an address is no data.
.func f (any, any)
        lea     f(%rip), %rax
        popcnt  %rax, %rax
        mov     %rax, 0x10000000
        .return
