# A direct call, with a check of the stack.
.func f (any) -> any frame 8
        sub     $8, %rsp
        cmp     $0x5000, %sp
        jb      less
        call    g
less:   mov     $0, %eax
        add     $8, %rsp
        .return
.func g (any)
        .return
