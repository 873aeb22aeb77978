# The same as in cases, on another CPU than the cokernel's alone.
attack="hook-lstar 1"
what="LSTAR changed: CPU 1"
found="expected entry_SYSCALL_64, found 0x[0-9a-f]*; leads to module kyozon_attacks$"
