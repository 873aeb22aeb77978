# expect: argument rdi: expected u16, found u32
# The argument has 16 bits.
.func f (u32)
        cmp     $0x6000, %sp
        jb      out
        call    g
out:    .return
.func g (u16)
        .return
