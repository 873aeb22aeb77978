# expect: expected a check of the stack
# The check was for a smaller frame.
.func f (any, any) frame 64
        cmp     $0x6000, %sp
        jb      out
        sub     $64, %rsp
        call    g
        add     $64, %rsp
out:    .return
.func g ()
        .return
