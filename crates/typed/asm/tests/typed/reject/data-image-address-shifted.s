# expect: expected \d+ bytes of data, found
# The upper half of an address is no data.
.func f (any, any)
        lea     f(%rip), %rax
        shr     $32, %rax
        mov     %rax, 0x10000000
        .return
