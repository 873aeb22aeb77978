# A larger number checks further down: the frame that comes after.
.func f (any, any) frame 4096
        cmp     $0x6000, %sp
        jb      out
        sub     $4096, %rsp
        call    g
        add     $4096, %rsp
out:    .return
.func g ()
        .return
