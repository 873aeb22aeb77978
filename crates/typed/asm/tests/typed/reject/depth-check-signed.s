# expect: expected a stack checked
# A signed comparison of the height proves nothing.
.func f (any, any)
        cmp     $0x6000, %sp
        jl      out
        call    g
out:    .return
.func g ()
        .return
