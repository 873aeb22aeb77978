# expect: unknown opcode|prefix|not allowed|REX
# The instruction is not in the table.
.func f (any, any)
        vpaddb  %zmm0, %zmm1, %zmm2
        .return
