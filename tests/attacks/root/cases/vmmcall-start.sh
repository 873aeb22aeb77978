# The hypervisor is called to start the ticks again and again, with the key that kyozon.ko keeps: each start would put
# the next tick off.
control=survived
attempt() { stop_ticks vmmcall start leaked; }
works() { ticks_stopped || ! answer | grep -q ': 0 of'; }
wall=reported report='wall: start of ticks that run, from CPU [0-9]+, rip 0x[0-9a-f]+, task'
