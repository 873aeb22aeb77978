# The output of the cokernel's serial port is switched off.
attempt() { root serial 0x3e8; }
works() { answer | grep -q changes; }
wall=reported report='wall: write to port 0x3ec from CPU 0, rip 0x[0-9a-f]+, task sh'
