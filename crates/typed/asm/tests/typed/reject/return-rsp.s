# expect: rsp: expected
# The stack pointer is 8 too low.
.func f (any, any) frame 8
        push    %rdi
        .return
