# expect: expected \d+ bytes of data, found
# An address mixed with a number is no data.
.func f (any, any)
        lea     f(%rip), %rax
        xor     %rdi, %rax
        mov     %rax, 0x10000000
        .return
