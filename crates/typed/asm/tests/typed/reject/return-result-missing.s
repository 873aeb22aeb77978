# expect: result rax: expected any, found unknown
# rax was not set.
.func f (any) -> any
        nop
        .return
