# expect: argument rdi: expected u32, found any
# The argument has 32 bits.
.func f (any)
        cmp     $0x6000, %sp
        jb      out
        call    g
out:    .return
.func g (u32)
        .return
