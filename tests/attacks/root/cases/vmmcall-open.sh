# The hypervisor is called to open the wall on the cokernel's CPU, with guessed keys.
control=survived
attempt() { root vmmcall open guessed 100; }
works() { ! answer | grep -q ': 0 of'; }
wall=reported report='wall: call 0x4b590002 without the key from CPU [0-9]+, rip 0x[0-9a-f]+, task'
