# expect: unknown opcode|prefix|not allowed|REX
# The instruction is not in the table.
.func f (any, any)
        movdq2q %xmm0, %mm0
        .return
