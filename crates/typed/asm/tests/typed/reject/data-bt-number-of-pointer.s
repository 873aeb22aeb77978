# expect: expected \d+ bytes of data, found
# A bit whose number is of an address is no data.
.func f (any, any)
        lea     f(%rip), %rcx
        bt      %rcx, %rdi
        setc    0x10000000
        .return
