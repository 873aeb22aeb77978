# expect: head 0x.*, rsp: expected stack|rsp: expected|expected a frame
# The stack grows with each round.
.func f (any, u32) frame 8
.head
again:  push    %rdi
        test    %esi, %esi
        jne     again
        pop     %rdi
        .return
