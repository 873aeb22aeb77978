# expect: head 0x.*\[stack-8, 8 bytes\]
# What comes back in the slot is wider.
.func f (any, u32) frame 8
        push    $5
.head
again:  mov     %rdi, (%rsp)
        test    %esi, %esi
        jne     again
        lea     8(%rsp), %rsp
        .return
