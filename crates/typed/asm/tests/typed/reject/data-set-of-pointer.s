# expect: expected \d+ bytes of data, found
# Whether an address is below a number is no data.
.func f (any, any)
        lea     f(%rip), %rax
        cmp     %rdi, %rax
        setb    0x10000000
        .return
