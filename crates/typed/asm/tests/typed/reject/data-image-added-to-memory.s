# expect: expected \d+ bytes of data, found
# A sum of memory and an address is no data.
.func f (any, any)
        lea     f(%rip), %rax
        add     %rax, 0x10000000
        .return
