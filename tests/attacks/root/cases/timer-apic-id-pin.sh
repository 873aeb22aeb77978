# As timer-apic-id, but the tick comes by a pin. No other interrupt of the cokernel reaches that CPU: docs/limits.md.
cpus=2
options="--tick hpet-ioapic"
attempt() { stop_ticks timer apic-id; }
works() { ticks_stopped; }
wall=works
