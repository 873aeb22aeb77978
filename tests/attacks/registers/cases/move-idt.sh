# The CPUs use a copy of the interrupt table.
attack="move-idt"
what="interrupt table moved: CPU 0"
found="expected idt_table, found 0x[0-9a-f]*; leads to module kyozon_attacks$"
