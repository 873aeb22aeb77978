# expect: write of 16 bytes
# A 16-byte store that begins just before the end of the guard.
.func f (any, any)
        mov     $0xa0ffffff8, %rax
        movups  %xmm0, (%rax)
        .return
