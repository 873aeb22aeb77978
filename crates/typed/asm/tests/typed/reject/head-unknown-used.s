# expect: expected \d+ bytes of data, found
# Unknown is no data.
.func f (any, u32)
.head rdi: unknown
again:  mov     %rdi, 0x10000000
        test    %esi, %esi
        jne     again
        .return
