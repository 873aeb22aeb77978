# expect: head 0x.*, rdi: expected \[0x0, 0x40, 0x8\], found
# The numbers are not congruent to the head's.
.func f (any, u32)
        mov     $4, %edi
.head rdi: [0, 0x40, 8]
again:  add     $8, %edi
        cmp     $0x3c, %edi
        jbe     again
        .return
