# The IO-APIC's pin is masked by a write on one CPU that another CPU's selection turns to that pin.
cpus=2 turns=30
options="--tick hpet-ioapic"
attempt() { stop_ticks timer race; }
works() { ticks_stopped; }
wall=reported report='wall: write to the IO-APIC from CPU 1, rip 0x[0-9a-f]+'
