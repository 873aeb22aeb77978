# The timer's message is sent to the ID of no APIC.
options="--tick hpet-msi"
attempt() { stop_ticks timer route; }
works() { ticks_stopped; }
wall=reported report='wall: write to the timer from CPU 0, rip 0x[0-9a-f]+'
