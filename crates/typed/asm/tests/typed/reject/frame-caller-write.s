# expect: write of 8 bytes.*stack\+8
# The caller's frame is the caller's.
.func f (any, any)
        mov     %rdi, 8(%rsp)
        .return
