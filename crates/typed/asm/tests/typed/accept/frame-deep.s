# A deep frame after a check.
.func f (any, any) frame 8192
        lea     -8192(%rsp), %rax
        cmp     $0x5000, %ax
        jb      out
        sub     $8192, %rsp
        mov     %rdi, (%rsp)
        add     $8192, %rsp
out:    nop
        .return
