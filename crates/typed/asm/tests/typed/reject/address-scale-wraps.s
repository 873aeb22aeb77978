# expect: write of 8 bytes
# An index that its scale carries beyond 64 bits.
.func f (any, any)
        shr     $2, %rdi
        mov     %rsi, 0x10000000(,%rdi,8)
        .return
