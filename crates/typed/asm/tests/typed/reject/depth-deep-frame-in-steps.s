# expect: expected a stack checked
# Many small steps are a large one.
.func f (any, any) frame 8192
        sub     $2048, %rsp
        sub     $2048, %rsp
        add     $4096, %rsp
        .return
.func g ()
        .return
