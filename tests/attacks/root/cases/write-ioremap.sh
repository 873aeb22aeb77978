# A word is overwritten, mapped as device memory.
attempt() { root write ioremap; }
works() { is_changed; }
wall=reported report='wall: write to 0x[0-9a-f]+ from CPU 0, rip 0x[0-9a-f]+'
