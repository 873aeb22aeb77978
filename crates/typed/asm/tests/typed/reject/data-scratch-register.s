# expect: expected \d+ bytes of data, found
# What the caller left in r10 is no data.
.func f (any, any)
        mov     %r10, 0x10000000
        .return
