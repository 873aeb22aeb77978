# Every 64-bit system call enters the kernel by way of a module.
attack="hook-lstar"
what="LSTAR changed: CPU 0"
found="expected entry_SYSCALL_64, found 0x[0-9a-f]*; leads to module kyozon_attacks$"
