# expect: head 0x.*, rax: expected bytes 0x1
# One byte of data flows in, none comes back.
.func f (any, u32)
        mov     %dil, %al
.head
again:  mov     %r10, %rax
        test    %esi, %esi
        jne     again
        .return
