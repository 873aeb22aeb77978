# The same as in cases, on another CPU than the cokernel's alone.
attack="move-idt 1"
what="interrupt table moved: CPU 1"
found="expected idt_table, found 0x[0-9a-f]*; leads to module kyozon_attacks$"
