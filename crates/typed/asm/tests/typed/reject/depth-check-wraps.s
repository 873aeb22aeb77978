# expect: expected a stack checked|flags
# An address far below wraps to the top of the stack.
.func f (any, any) frame 16128
        lea     -0x10000(%rsp), %rax
        cmp     $0x6000, %ax
        jb      out
        sub     $0x3f00, %rsp
        call    g
        add     $0x3f00, %rsp
out:    .return
.func g ()
        .return
