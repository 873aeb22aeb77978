# expect: expected \d+ bytes of data, found
# Nor is one byte of it.
.func f (any, any)
        mov     %spl, 0x10000000
        .return
