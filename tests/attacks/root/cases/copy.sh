# One instruction reads the cokernel's memory and writes to an address that is not mapped yet.
control=survived
attempt() { root copy; }
wall=reported report='wall: read of 0x[0-9a-f]+ from CPU 0, rip 0x[0-9a-f]+'
