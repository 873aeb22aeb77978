# expect: expected \d+ bytes of data, found
# A scaled address is no data.
.func f (any, any)
        lea     f(%rip), %rax
        lea     (,%rax,2), %rax
        mov     %rax, 0x10000000
        .return
