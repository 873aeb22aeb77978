# The gate of a vector leads into a module.
attack="hook-gate"
what="interrupt gate changed: vector 4"
found="expected asm_exc_overflow, found 0x[0-9a-f]*; leads to module kyozon_attacks$"
