# Almost 4 KiB need no check.
.func f (any, any) frame 4088
        sub     $4088, %rsp
        mov     %rdi, (%rsp)
        add     $4088, %rsp
        .return
