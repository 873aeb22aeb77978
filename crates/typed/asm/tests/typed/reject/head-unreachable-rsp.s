# expect: rsp: expected|head 0x.*, rsp
# Nothing flows in from above; the stack pointer is elsewhere.
.func f (any, u32) frame 8
        jmp     entry
.head rsp: stack-8
again:  lea     8(%rsp), %rsp
entry:  test    %esi, %esi
        jne     again
        .return
