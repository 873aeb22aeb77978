# expect: head 0x.*, rdi: expected \[0x1, 0xa\]
# Below the range that the head says.
.func f (any, u32)
        mov     $5, %edi
.head rdi: [1, 10]
again:  mov     %edi, %eax
        sub     $1, %edi
        cmp     $20, %esi
        jne     again
        .return
