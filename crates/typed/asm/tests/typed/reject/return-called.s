# expect: operands that this checker has no rule for
# The return stub is not called.
.func f (any, any)
        call    __x86_return_thunk
        .return
