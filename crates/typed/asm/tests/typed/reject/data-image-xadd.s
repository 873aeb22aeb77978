# expect: expected \d+ bytes of data, found
# xadd stores a sum with an address.
.func f (any, any)
        lea     f(%rip), %rax
        xadd    %rax, 0x10000000
        .return
