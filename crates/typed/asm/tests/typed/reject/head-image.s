# expect: head 0x.*, rax: expected image
# The address moves in the loop.
.func f (any, u32)
        lea     f(%rip), %rax
.head
again:  add     $4, %rax
        test    %esi, %esi
        jne     again
        .return
