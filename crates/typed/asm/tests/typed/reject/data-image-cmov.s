# expect: expected \d+ bytes of data, found
# Either a number or an address is no data.
.func f (any, any)
        lea     f(%rip), %rax
        test    %rdi, %rdi
        cmove   %rdi, %rax
        mov     %rax, 0x10000000
        .return
