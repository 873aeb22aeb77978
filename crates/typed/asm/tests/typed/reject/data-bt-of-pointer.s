# expect: expected \d+ bytes of data, found
# A bit of an address is no data.
.func f (any, any)
        lea     f(%rip), %rax
        bt      $12, %rax
        setc    0x10000000
        .return
