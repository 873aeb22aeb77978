# expect: unknown opcode|prefix|not allowed|REX
# The instruction is not in the table.
.func f (any, any)
        sha1msg1 %xmm0, %xmm1
        .return
