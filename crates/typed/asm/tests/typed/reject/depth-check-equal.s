# expect: expected a stack checked
# Not equal proves nothing.
.func f (any, any)
        cmp     $0x6000, %sp
        je      out
        call    g
out:    .return
.func g ()
        .return
