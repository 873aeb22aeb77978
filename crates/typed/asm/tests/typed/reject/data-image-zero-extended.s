# expect: expected \d+ bytes of data, found
# A zero-extended byte of an address is no data.
.func f (any, any)
        lea     f(%rip), %rax
        movzbl  %al, %eax
        mov     %eax, 0x10000000
        .return
