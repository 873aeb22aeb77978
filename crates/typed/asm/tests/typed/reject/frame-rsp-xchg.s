# expect: rsp: expected
# xchg writes the stack pointer too.
.func f (any, any)
        xchg    %rdi, %rsp
        .return
