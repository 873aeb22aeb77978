# dec of each size.
.func f (any, any)
        dec     %rdi
        dec     %edi
        dec     %di
        dec     %dil
        decq    0x10000000
        lock    decl 0x10000000
        decw    0x10000000
        decb    0x10000000
        js      out
        nop
out:    mov     %rdi, 0x10000000
        .return
