# expect: unknown opcode|prefix|not allowed|REX
# The instruction is not in the table.
.func f (any, any)
        mov     0x10000000(%edi), %eax
        .return
