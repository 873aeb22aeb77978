# expect: expected \d+ bytes of data, found
# The lower half of an address is no data.
.func f (any, any)
        lea     f(%rip), %eax
        mov     %eax, 0x10000000
        .return
