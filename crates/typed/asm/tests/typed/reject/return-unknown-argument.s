# expect: result rax: expected any, found unknown
# What is passed as unknown is no result.
.func f (unknown) -> any
        mov     %rdi, %rax
        .return
