# expect: result rax: expected any, found stack
# An address is no result.
.func f (any) -> any
        mov     %rsp, %rax
        .return
