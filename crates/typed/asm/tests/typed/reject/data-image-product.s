# expect: expected \d+ bytes of data, found
# The upper half of an address's product is no data.
.func f (any, any)
        lea     f(%rip), %rax
        mul     %rdi
        mov     %rdx, 0x10000000
        .return
