# expect: head 0x.*, rdi: expected \[0x0, 0x40, 0x8\]
# No multiple of the step.
.func f (any, u32)
        xor     %edi, %edi
.head rdi: [0, 0x40, 8]
again:  add     $4, %edi
        cmp     $0x40, %edi
        jbe     again
        .return
