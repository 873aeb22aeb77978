# expect: unknown opcode|prefix|not allowed|REX
# The instruction is not in the table.
.func f (any, any)
        rdfsbase %rax
        .return
