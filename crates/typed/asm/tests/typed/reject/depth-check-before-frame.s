# expect: expected a stack checked
# The check was for a smaller frame.
.func f (any, any) frame 512
        cmp     $0x5000, %sp
        jb      out
        sub     $512, %rsp
        call    g
        add     $512, %rsp
out:    .return
.func g ()
        .return
