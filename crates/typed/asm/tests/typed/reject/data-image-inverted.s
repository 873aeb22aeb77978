# expect: expected \d+ bytes of data, found
# An inverted address is no data.
.func f (any, any)
        lea     f(%rip), %rax
        not     %rax
        mov     %rax, 0x10000000
        .return
