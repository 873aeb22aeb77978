# neg of each size.
.func f (any, any)
        neg     %rdi
        neg     %edi
        neg     %di
        neg     %dil
        negq    0x10000000
        lock    negl 0x10000000
        sbb     %rax, %rax
        mov     %rax, 0x10000000
        .return
