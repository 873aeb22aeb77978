# Bytes that nothing reaches are not looked at.
.func f ()
        .return
        .byte   0x0f, 0x05, 0xcc
.func g ()
        .return
