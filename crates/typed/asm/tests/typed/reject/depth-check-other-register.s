# expect: expected a stack checked
# A number is no height.
.func f (any, any)
        cmp     $0x6000, %di
        jb      out
        call    g
out:    .return
.func g ()
        .return
