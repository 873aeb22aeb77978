# expect: work-jumps.s:[0-9]+: function 0, text offset 0x[0-9a-f]+: too many jumps and heads with so deep a frame
# Each jump copies a frame of 16 KiB, and joins it at the next instruction.
.func f (any) frame 16384
        cmp     $0xa000, %sp
        jb      out
        sub     $16384, %rsp
        ucomiss %xmm0, %xmm0
        .rept   200
        je      1f
1:
        .endr
        add     $16384, %rsp
out:    .return
