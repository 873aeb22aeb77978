# expect: expected \d+ bytes of data, found
# A negated address is no data.
.func f (any, any)
        lea     f(%rip), %rax
        neg     %rax
        mov     %rax, 0x10000000
        .return
