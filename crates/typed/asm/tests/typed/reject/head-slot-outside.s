# expect: malformed annotation
# The head names a slot that is not in the frame.
.func f (any, u32) frame 16
        push    %rdi
.head [stack-16]: any
again:  test    %esi, %esi
        jne     again
        lea     8(%rsp), %rsp
        .return
