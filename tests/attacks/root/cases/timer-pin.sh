# The IO-APIC's pin is masked.
options="--tick hpet-ioapic"
attempt() { stop_ticks timer pin; }
works() { ticks_stopped; }
wall=reported report='wall: write to the IO-APIC from CPU 0, rip 0x[0-9a-f]+'
