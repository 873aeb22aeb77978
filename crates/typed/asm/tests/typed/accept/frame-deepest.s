# A few jumps in a frame of 16 KiB.
.func f (any) frame 16384
        cmp     $0xa000, %sp
        jb      out
        sub     $16384, %rsp
        ucomiss %xmm0, %xmm0
        .rept   16
        je      1f
1:
        .endr
        add     $16384, %rsp
out:    .return
