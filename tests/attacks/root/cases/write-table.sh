# The cokernel's memory becomes one of Linux's page tables: no instruction names it, the CPU goes there itself.
attempt() { root table || true; }
works() { answer | grep -q 'is used'; }
wall=reported report='wall: (read of|write to) 0x[0-9a-f]+ from CPU 0, rip 0x[0-9a-f]+'
