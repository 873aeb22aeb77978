# expect: expected 8 bytes of data, found unknown
# What is passed as unknown is no data.
.func f (unknown)
        mov     %rdi, 0x10000000
        .return
