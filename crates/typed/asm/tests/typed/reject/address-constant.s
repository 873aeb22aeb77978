# expect: write of 4 bytes.*found 0xffffffffffff8000
# A constant address outside the region.
.func f (any, any)
        mov     $1, %eax
        mov     %eax, -0x8000
        .return
