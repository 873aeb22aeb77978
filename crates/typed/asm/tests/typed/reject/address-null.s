# expect: read of 8 bytes.*found 0x0
# Address 0 is not in the region.
.func f (any, any)
        mov     0, %rax
        .return
