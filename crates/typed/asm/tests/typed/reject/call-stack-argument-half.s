# expect: stack argument 1: expected 4 bytes of data
# The second argument needs four bytes of data.
.func f (any) frame 24
        sub     $24, %rsp
        cmp     $0x5000, %sp
        jb      out
        mov     %rdi, (%rsp)
        call    g
out:    add     $24, %rsp
        .return
.func g (; stack 2 u32 1)
        .return
