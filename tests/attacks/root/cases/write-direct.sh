# A word of the cokernel's memory is overwritten through Linux's direct map.
attempt() { root write direct; }
works() { is_changed; }
wall=reported report='wall: write to 0x[0-9a-f]+ from CPU 0, rip 0x[0-9a-f]+'
