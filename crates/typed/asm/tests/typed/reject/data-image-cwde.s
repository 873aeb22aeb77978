# expect: expected \d+ bytes of data, found
# A sign-extended half of an address is no data.
.func f (any, any)
        lea     f(%rip), %rax
        cwtl
        mov     %eax, 0x10000000
        .return
