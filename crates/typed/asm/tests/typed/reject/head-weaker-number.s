# expect: head 0x.*, rsi: expected u32, found any
# What comes back is wider than the head says.
.func f (any, u32)
.head rsi: u32
again:  mov     %rdi, %rsi
        test    %edi, %edi
        jne     again
        .return
