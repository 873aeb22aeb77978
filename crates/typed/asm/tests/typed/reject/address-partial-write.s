# expect: read of 1 bytes
# A 16-bit write keeps the upper bits.
.func f (any, any)
        mov     %si, %di
        movzbl  0x10000000(%rdi), %eax
        .return
