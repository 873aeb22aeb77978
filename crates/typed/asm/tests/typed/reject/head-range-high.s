# expect: head 0x.*, rdi: expected \[0x1, 0xa\]
# Above the range that the head says.
.func f (any, u32)
        mov     $5, %edi
.head rdi: [1, 10]
again:  add     $1, %edi
        cmp     $11, %edi
        jbe     again
        .return
