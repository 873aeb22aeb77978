# expect: expected \d+ bytes of data, found
# The byte above is still of the address.
.func f (any, any)
        lea     f(%rip), %rax
        mov     %dil, %al
        mov     %ah, 0x10000000
        .return
