# A timer of Linux's sends its message, four bytes, to the cokernel's memory instead of an APIC. No page table is on
# that way, and in QEMU no IOMMU either.
attempt() { root hpet; }
works() { is_changed || is_stopped; }
wall=reported report='wall: write to the timer from CPU 0, rip 0x[0-9a-f]+'
