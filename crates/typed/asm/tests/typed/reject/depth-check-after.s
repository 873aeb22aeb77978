# expect: expected a stack checked
# The check comes after the call.
.func f (any, any)
        call    g
        cmp     $0x6000, %sp
        jb      out
out:    .return
.func g ()
        .return
