# expect: unknown opcode|prefix|not allowed|REX
# The instruction is not in the table.
.func f (any, any)
        vpaddb  %ymm0, %ymm1, %ymm2
        .return
