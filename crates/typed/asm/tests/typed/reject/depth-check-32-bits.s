# expect: expected a stack checked|flags
# The upper bits of the stack pointer are no height.
.func f (any, any)
        cmp     $0x6000, %esp
        jb      out
        call    g
out:    .return
.func g ()
        .return
