# Root switches the IOMMU off before the device writes.
attempt() { root iommu 0xfed80000 && root dma; }
works() { is_changed || is_stopped; }
wall=reported report='wall: write to 0xfed80018 .*: the IOMMU'
