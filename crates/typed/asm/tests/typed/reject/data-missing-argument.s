# expect: expected \d+ bytes of data, found
# A register beyond the arguments is no data.
.func f (any, any)
        mov     %rdx, 0x10000000
        .return
