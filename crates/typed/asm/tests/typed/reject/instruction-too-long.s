# expect: unknown opcode|prefix|not allowed|REX|longer
# The instruction is not in the table.
.func f (any, any)
        .byte   0x66, 0x2e, 0x66, 0x2e, 0x66, 0x2e, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
        .return
