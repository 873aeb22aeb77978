# inc of each size.
.func f (any, any)
        inc     %rdi
        inc     %edi
        inc     %di
        inc     %dil
        incq    0x10000000
        lock    incl 0x10000000
        incw    0x10000000
        incb    0x10000000
        jne     out
        nop
out:    mov     %rdi, 0x10000000
        .return
