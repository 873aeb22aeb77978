# expect: unknown opcode|prefix|not allowed|REX
# The instruction is not in the table.
.func f (any, any)
        .byte   0x62, 0xf1, 0x7c, 0x48, 0x10, 0x00
        .return
