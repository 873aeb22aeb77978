# expect: expected 1 bytes of data, found
# If all bits are shifted out, the manual leaves the carry undefined. It can be that of an address.
.func f (any, any)
        lea     f(%rip), %rax
        add     %rdi, %rax
        shr     $8, %dil
        setc    0x10000000
        .return
