# The cokernel's memory becomes a page table of Linux: the CPU itself reads it, not an instruction.
attempt() { root table || true; }
works() { answer | grep -q 'is used'; }
wall=reported report='wall: (read of|write to) 0x[0-9a-f]+ from CPU 0, rip 0x[0-9a-f]+'
