# A device writes to the cokernel's memory. Behind the wall, the hypervisor drives the IOMMU if Linux does not use it;
# this emulator's IOMMU records no event for the write.
attempt() { root dma; }
works() { is_changed || is_stopped; }
wall=survived
