# expect: write of 8 bytes.*stack\+0
# The return address has no name.
.func f (any, any)
        mov     %rdi, (%rsp)
        .return
