# Stores a byte every 16 bytes: its one instruction that accesses the region may fault.
.func fill ()
        mov     $0x10000000, %eax
.head rax: [0x10000000, 0x10000ff0, 16]
again:  movb    $1, (%rax)
        add     $16, %rax
        cmp     $0x10001000, %rax
        jne     again
        .return
