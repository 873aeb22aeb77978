# expect: head 0x.*, rdi: expected
# The head keeps what flows in: it must say more.
.func f (any, u32)
        xor     %edi, %edi
.head
again:  add     $1, %edi
        cmp     $100, %edi
        jb      again
        .return
