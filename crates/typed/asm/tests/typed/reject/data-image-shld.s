# expect: expected \d+ bytes of data, found
# Bits that shld takes from an address are no data.
.func f (any, any)
        lea     f(%rip), %rax
        xor     %edx, %edx
        shld    $8, %rax, %rdx
        mov     %rdx, 0x10000000
        .return
