# expect: unknown opcode|prefix|not allowed|REX
# The instruction is not in the table.
.func f (any, any)
        vaddps  %xmm0, %xmm1, %xmm2
        .return
