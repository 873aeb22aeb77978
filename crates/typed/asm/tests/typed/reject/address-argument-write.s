# expect: write of 8 bytes.*found any
# An argument is a number, not an address.
.func f (any, any)
        mov     %rsi, (%rdi)
        .return
