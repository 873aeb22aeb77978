# expect: read of 8 bytes
# The last bytes of the guard and one more.
.func f (any, any)
        mov     $0xa0ffffff9, %rax
        mov     (%rax), %rax
        .return
