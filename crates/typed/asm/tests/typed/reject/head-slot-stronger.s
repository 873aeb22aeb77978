# expect: head 0x.*\[stack-8, 8 bytes\]: expected u32|head 0x.*\[stack-8, 8 bytes\]
# The head claims 32 bits in the slot.
.func f (any, u32) frame 8
        push    %rdi
.head [stack-8]: u32
again:  test    %esi, %esi
        jne     again
        lea     8(%rsp), %rsp
        .return
