# A word is overwritten through an alias in Linux's virtual address space.
attempt() { root write vmap; }
works() { is_changed; }
wall=reported report='wall: write to 0x[0-9a-f]+ from CPU 0, rip 0x[0-9a-f]+'
