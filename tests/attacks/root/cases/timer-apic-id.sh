# The cokernel's CPU gets another APIC ID, which no message of the tick has.
cpus=2
options="--tick hpet-msi"
attempt() { stop_ticks timer apic-id; }
works() { ticks_stopped; }
wall=reported report='wall: the APIC ID of CPU 1 was changed to 0x3f; it is set back'
