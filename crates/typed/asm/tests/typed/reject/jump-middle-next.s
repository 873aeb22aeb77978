# expect: no instruction|middle|unknown opcode|goes on
# Overlapping instructions.
.func f (any, any)
        test    %edi, %edi
        .byte   0x74, 0x01
        .byte   0xb8, 0x0f, 0x05, 0x90, 0x90
        .return
