# expect: expected a stack checked|flags
# An address as far below as the floor can wrap.
.func f (any, any) frame 16128
        lea     -0x5000(%rsp), %rax
        cmp     $0x6000, %ax
        jb      out
        sub     $0x3f00, %rsp
        call    g
        add     $0x3f00, %rsp
out:    .return
.func g ()
        .return
