# expect: unknown opcode|prefix|not allowed|REX
# The instruction is not in the table.
.func f (any, any)
        .byte   0xf2, 0xe8, 0, 0, 0, 0
        .return
