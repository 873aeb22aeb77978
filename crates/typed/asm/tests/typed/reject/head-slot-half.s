# expect: head 0x.*\[stack-8, 4 bytes\]
# The lower half of a fresh slot is no data.
.func f (any, u32) frame 8
        sub     $8, %rsp
.head dword [stack-8]: u32
again:  test    %esi, %esi
        jne     again
        lea     8(%rsp), %rsp
        .return
