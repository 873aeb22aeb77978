# expect: expected \d+ bytes of data, found
# Nor is bits 8 to 15 of it.
.func f (any, any)
        mov     %bh, 0x10000000
        .return
