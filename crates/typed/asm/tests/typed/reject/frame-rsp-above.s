# expect: rsp: expected
# The stack pointer does not pass the return address.
.func f (any, any)
        add     $8, %rsp
        .return
