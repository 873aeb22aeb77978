# 32-bit system calls would enter a module.
attack="hook-cstar"
what="CSTAR changed: CPU 0"
found="expected entry_SYSCALL_compat, found 0x[0-9a-f]*; leads to module kyozon_attacks$"
