# INIT becomes an exception. QEMU 7.2 lacks the register, so the attempt has no effect there without a wall.
control=survived
attempt() { root msr vm-cr; }
works() { answer | grep -q changes; }
wall=reported report='wall: write of MSR 0x[0-9a-f]+ from CPU [0-9]+, rip 0x[0-9a-f]+'
