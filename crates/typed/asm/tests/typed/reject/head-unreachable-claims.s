# expect: head 0x.*, rdi: expected u32, found any
# Nothing flows in from above, but what jumps back does not fit.
.func f (any, u32)
        jmp     entry
.head rdi: u32
again:  movzbl  0x10000000(%rdi), %eax
entry:  test    %esi, %esi
        jne     again
        .return
