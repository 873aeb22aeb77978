# The cokernel's code is overwritten.
attempt() { root break direct; }
works() { is_stopped; }
wall=reported report='wall: write to 0x[0-9a-f]+ from CPU 0, rip 0x[0-9a-f]+'
