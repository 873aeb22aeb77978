# expect: expected \d+ bytes of data, found
# The slot is unknown in the head.
.func f (any, u32) frame 8
        push    $5
.head [stack-8]: unknown
again:  mov     (%rsp), %rax
        mov     %rax, 0x10000000
        test    %esi, %esi
        jne     again
        lea     8(%rsp), %rsp
        .return
