# A frame that fits above the reserve needs no check.
.func f (any, any) frame 3832
        sub     $3832, %rsp
        mov     %rdi, (%rsp)
        add     $3832, %rsp
        .return
