# expect: expected \d+ bytes of data, found
# The stack pointer is no data.
.func f (any, any)
        mov     %rsp, 0x10000000
        .return
