# expect: rsp: expected
# The stack pointer is a multiple of 8.
.func f (any, any) frame 8
        sub     $4, %rsp
        add     $4, %rsp
        .return
