# expect: unknown opcode|prefix|not allowed|REX
# The instruction is not in the table.
.func f (any, any)
        .byte   0x66, 0x66, 0x89, 0xc0
        .return
