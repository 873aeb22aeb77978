# expect: argument rsi: expected u32, found unknown
# What is passed as unknown is passed on as unknown only.
.func f (any, unknown)
        cmp     $0x5000, %sp
        jb      out
        call    g
out:    .return
.func g (any, u32)
        .return
