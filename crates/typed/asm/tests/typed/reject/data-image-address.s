# expect: expected \d+ bytes of data, found
# The address of the text is no data.
.func f (any, any)
        lea     f(%rip), %rax
        mov     %rax, 0x10000000
        .return
