# expect: expected \d+ bytes of data, found
# What the caller left in rbx is no data.
.func f (any, any)
        mov     %rbx, 0x10000000
        .return
