# expect: head 0x.*, rbp: expected stack-8
# The frame pointer moves in the loop.
.func f (any, u32) frame 8
        push    %rbp
        mov     %rsp, %rbp
.head
again:  lea     -8(%rbp), %rbp
        test    %esi, %esi
        jne     again
        mov     (%rsp), %rbp
        lea     8(%rsp), %rsp
        .return
