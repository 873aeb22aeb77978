# expect: expected \d+ bytes of data, found
# Bits of an address are no data.
.func f (any, any)
        lea     f(%rip), %rax
        and     $0xff0, %eax
        mov     %eax, 0x10000000
        .return
