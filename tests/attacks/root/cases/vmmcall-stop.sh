# The hypervisor is called to stop the ticks, with guessed keys.
control=survived
attempt() { root vmmcall stop guessed 100; }
works() { ! answer | grep -q ': 0 of'; }
wall=reported report='wall: call 0x4b590004 without the key from CPU [0-9]+, rip 0x[0-9a-f]+, task'
