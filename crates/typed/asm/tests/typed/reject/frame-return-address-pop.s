# expect: rsp: expected
# The return address cannot be popped.
.func f (any, any)
        pop     %rax
        .return
