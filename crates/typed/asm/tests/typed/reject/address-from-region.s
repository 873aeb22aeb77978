# expect: read of 8 bytes.*found
# A pointer loaded from the region is a number.
.func f (any, any)
        mov     0x10000000, %rax
        mov     (%rax), %rax
        .return
