# User mode can call a module by a gate of the last CPU.
attack="make-call-gate $(($(nproc) - 1))"
what="descriptor 10 changed: CPU $(($(nproc) - 1))"
found="expected no gate, found 0x[0-9a-f]*; leads to module kyozon_attacks$"
