# expect: expected \d+ bytes of data, found
# One byte of data does not make eight.
.func f (any, any)
        lea     f(%rip), %rax
        mov     %dil, %al
        mov     %rax, 0x10000000
        .return
