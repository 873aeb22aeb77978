# expect: unknown opcode|prefix|not allowed|REX
# The instruction is not in the table.
.func f (any, any)
        .byte   0x8f, 0xe8, 0x78, 0xc0, 0xc0, 0x00
        .return
