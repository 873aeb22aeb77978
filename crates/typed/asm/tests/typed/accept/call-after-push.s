# The check leaves room to push arguments.
.func f (any) frame 64
        cmp     $0x5000, %sp
        jb      out
        push    %rdi
        push    %rdi
        call    g
        add     $16, %rsp
out:    .return
.func g (; stack 2)
        .return
