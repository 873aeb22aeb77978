# expect: expected \d+ bytes of data, found
# The sign of an address is no data.
.func f (any, any)
        lea     f(%rip), %rax
        cqo
        mov     %rdx, 0x10000000
        .return
