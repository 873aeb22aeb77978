# The local APIC's registers are moved.
attempt() { root msr apic-base; }
works() { answer | grep -q changes; }
wall=reported report='wall: write of MSR 0x[0-9a-f]+ from CPU [0-9]+, rip 0x[0-9a-f]+'
