# expect: argument rdi: expected any, found stack
# An address is no argument.
.func f (any)
        cmp     $0x6000, %sp
        jb      out
        mov     %rsp, %rdi
        call    g
out:    .return
.func g (any)
        .return
