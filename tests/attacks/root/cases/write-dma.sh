# A device writes to the cokernel's memory. Only an IOMMU could stop it.
attempt() { root dma; }
works() { is_changed || is_stopped; }
wall=stated report='not enforced.*DMA'
