# expect: unknown opcode|prefix|not allowed|REX
# The instruction is not in the table.
.func f (any, any)
        .byte   0xc1, 0xf0, 0x01
        .return
