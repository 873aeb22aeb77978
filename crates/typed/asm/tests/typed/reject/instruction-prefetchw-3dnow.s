# expect: unknown opcode|prefix|not allowed|REX
# The instruction is not in the table.
.func f (any, any)
        .byte   0x0f, 0x0f, 0xc0, 0x0c
        .return
