# expect: expected \d+ bytes of data, found
# One byte of four was not written.
.func f (any, any) frame 8
        sub     $8, %rsp
        mov     %di, (%rsp)
        mov     %dil, 2(%rsp)
        mov     (%rsp), %eax
        mov     %eax, 0x10000000
        add     $8, %rsp
        .return
