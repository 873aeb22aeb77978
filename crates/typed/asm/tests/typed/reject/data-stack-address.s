# expect: expected \d+ bytes of data, found
# An address of the frame is no data.
.func f (any, any)
        lea     -8(%rsp), %rax
        mov     %rax, 0x10000000
        .return
