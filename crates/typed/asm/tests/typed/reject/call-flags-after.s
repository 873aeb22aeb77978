# expect: expected flags that stem from data
# A call leaves nothing in the flags.
.func f (any)
        cmp     $0x6000, %sp
        jb      out
        call    g
        je      out
        nop
out:    .return
.func g ()
        .return
