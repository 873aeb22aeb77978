# expect: expected a stack checked
# The number is below the floor.
.func f (any, any)
        cmp     $0x4eff, %sp
        jb      out
        call    g
out:    .return
.func g ()
        .return
