# expect: unknown opcode|prefix|not allowed|REX
# The instruction is not in the table.
.func f (any, any)
        .byte   0x48, 0x0f, 0xb2, 0x04, 0x25, 0, 0, 0, 0x10
        .return
