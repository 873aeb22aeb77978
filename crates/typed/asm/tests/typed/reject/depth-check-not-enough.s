# expect: expected a stack checked
# Above the floor must be proven: above 0x4efe is not enough.
.func f (any, any)
        cmp     $0x4efe, %sp
        jbe     out
        call    g
out:    .return
.func g ()
        .return
