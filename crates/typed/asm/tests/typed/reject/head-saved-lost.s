# expect: head 0x.*, rbx: expected saved rbx
# The saved register changes in the loop.
.func f (any, u32)
.head
again:  mov     %esi, %ebx
        test    %esi, %esi
        jne     again
        .return
