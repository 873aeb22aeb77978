# expect: stack argument 0: expected 8 bytes of data
# The argument on the stack was not written.
.func f () frame 8
        cmp     $0x6000, %sp
        jb      out
        sub     $8, %rsp
        cmp     $0x6000, %sp
        jb      less
        call    g
less:   add     $8, %rsp
out:    .return
.func g (; stack 1)
        .return
