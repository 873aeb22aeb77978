# expect: read of 8 bytes.*stack\+8
# The caller's frame is the caller's.
.func f (any, any)
        mov     8(%rsp), %rax
        .return
