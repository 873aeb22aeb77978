# expect: Sub.*: too many jumps and heads with so deep a frame for so little text
# Each subtraction makes a frame of 16 KiB.
.func f (any) frame 16384
        cmp     $0xa000, %sp
        jb      out
        .rept   1100
        sub     $16384, %rsp
        add     $16384, %rsp
        .endr
out:    .return
