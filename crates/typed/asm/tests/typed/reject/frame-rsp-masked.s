# expect: rsp: expected
# The stack pointer is not masked.
.func f (any, any) frame 64
        and     $-16, %rsp
        .return
