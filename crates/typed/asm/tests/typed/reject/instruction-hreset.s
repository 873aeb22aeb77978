# expect: unknown opcode|prefix|not allowed|REX
# The instruction is not in the table.
.func f (any, any)
        .byte   0xf3, 0x0f, 0x3a, 0xf0, 0xc0, 0x00
        .return
