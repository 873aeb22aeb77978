# expect: rsp: expected
# pop writes the stack pointer too.
.func f (any, any) frame 8
        push    %rdi
        pop     %rsp
        .return
