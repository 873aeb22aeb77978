# expect: expected \d+ bytes of data, found
# Nor is half of it.
.func f (any, any)
        mov     %r12d, 0x10000000
        .return
