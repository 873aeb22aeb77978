# Double faults use another stack.
attack="move-stack"
what="interrupt stack 1 changed: CPU 0"
found="expected 0xfffffe[0-9a-f]*, found 0x[0-9a-f]*$"
