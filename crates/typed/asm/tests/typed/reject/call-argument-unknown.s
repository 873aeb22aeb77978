# expect: argument rsi: expected any, found unknown
# The second argument was not set.
.func f (any)
        cmp     $0x6000, %sp
        jb      out
        call    g
out:    .return
.func g (any, any)
        .return
