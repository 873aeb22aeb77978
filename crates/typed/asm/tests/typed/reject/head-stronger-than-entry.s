# expect: head 0x.*, rdi: expected u32, found any
# What flows in is wider than the head says.
.func f (any, u32)
.head rdi: u32
again:  dec     %edi
        jne     again
        .return
