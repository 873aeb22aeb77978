# expect: argument r9: expected any, found saved rbx
# The caller's rbx is no argument.
.func f (any, any, any, any, any)
        cmp     $0x6000, %sp
        jb      out
        mov     %rbx, %r9
        call    g
out:    .return
.func g (any, any, any, any, any, any)
        .return
