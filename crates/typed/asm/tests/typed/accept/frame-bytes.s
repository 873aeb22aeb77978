# Bytes of a slot one by one.
.func f (any, any) frame 8
        sub     $8, %rsp
        mov     %dil, (%rsp)
        mov     %dil, 1(%rsp)
        mov     %di, 2(%rsp)
        mov     (%rsp), %eax
        mov     %eax, 0x10000000
        add     $8, %rsp
        .return
