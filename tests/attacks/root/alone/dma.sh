# A device writes into the cokernel's memory. Behind the wall the hypervisor drives the IOMMU that Linux leaves alone; this
# emulator's writes no event of it.
attempt() { root dma; }
works() { is_changed || is_stopped; }
wall=survived
