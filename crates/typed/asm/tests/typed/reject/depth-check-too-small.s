# expect: expected a check of the stack
# The number is below the floor.
.func f (any, any)
        cmp     $0x4eff, %sp
        jb      out
        call    g
out:    .return
.func g ()
        .return
