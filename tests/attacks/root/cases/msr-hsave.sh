# The page for the CPU's host state is replaced.
attempt() { root msr hsave; }
works() { answer | grep -q changes; }
wall=reported report='wall: write of MSR 0x[0-9a-f]+ from CPU [0-9]+, rip 0x[0-9a-f]+'
