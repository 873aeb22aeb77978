# User mode can call a module by a gate of another CPU.
attack="make-call-gate 1"
what="descriptor 10 changed: CPU 1"
found="expected no gate, found 0x[0-9a-f]*; leads to module kyozon_attacks$"
