# expect: expected \d+ bytes of data, found
# A sign-extended byte of an address is no data.
.func f (any, any)
        lea     f(%rip), %rax
        movsbq  %al, %rax
        mov     %rax, 0x10000000
        .return
