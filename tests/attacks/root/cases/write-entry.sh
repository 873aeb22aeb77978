# A word is overwritten through a page-table entry changed by hand.
attempt() { root write entry; }
works() { is_changed; }
wall=reported report='wall: write to 0x[0-9a-f]+ from CPU 0, rip 0x[0-9a-f]+'
