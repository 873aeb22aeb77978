# expect: rsp: expected
# The stack pointer is at a known place.
.func f (any, any) frame 64
        sub     %rdi, %rsp
        .return
