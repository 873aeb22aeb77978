# expect: expected \d+ bytes of data, found
# The difference of two addresses is no data.
.func f (any, any)
        lea     f(%rip), %rax
        sub     %rsp, %rax
        mov     %rax, 0x10000000
        .return
