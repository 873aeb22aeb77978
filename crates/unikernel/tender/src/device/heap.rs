//! The memory that a device can access: its guest's heap, at guest addresses.

use crate::layout::SYSTEM_BYTES;
use crate::memory::{Block, Memory};
use vm_memory::bitmap::BS;
use vm_memory::guest_memory::Error;
use vm_memory::{
    GuestAddress, GuestMemoryBackend, GuestMemoryRegion, GuestMemoryRegionBytes, GuestUsize,
    MemoryRegionAddress, VolatileMemory, VolatileSlice,
};

/// A guest's heap.
#[derive(Clone, Debug)]
pub struct Heap {
    block: Block,
    /// First guest address.
    base: u64,
    /// Size in bytes.
    bytes: u64,
    /// Offset in the block in bytes.
    offset: u64,
}

impl Heap {
    /// The heap in a guest's memory.
    pub fn of(memory: &Memory) -> Self {
        let heap = memory.layout.heap;
        let piece = memory.layout.pieces.iter().find(|piece| piece.base == heap.base);
        let offset = piece.map_or(SYSTEM_BYTES, |piece| piece.offset);
        Self { block: memory.block.clone(), base: heap.base, bytes: heap.bytes, offset }
    }
}

impl GuestMemoryRegion for Heap {
    type B = ();

    fn len(&self) -> GuestUsize {
        self.bytes
    }

    fn start_addr(&self) -> GuestAddress {
        GuestAddress(self.base)
    }

    fn bitmap(&self) -> BS<'_, ()> {}

    fn get_slice(
        &self,
        offset: MemoryRegionAddress,
        count: usize,
    ) -> Result<VolatileSlice<'_>, Error> {
        let end = offset.0.checked_add(count as u64);
        if end.is_none_or(|end| end > self.bytes) {
            return Err(Error::InvalidBackendAddress);
        }
        // The sum is inside the block, because the heap's piece is.
        self.block.get_slice((self.offset + offset.0) as usize, count).map_err(Into::into)
    }
}

impl GuestMemoryRegionBytes for Heap {}

impl GuestMemoryBackend for Heap {
    type R = Self;

    fn num_regions(&self) -> usize {
        1
    }

    fn find_region(&self, address: GuestAddress) -> Option<&Self> {
        GuestMemoryRegion::to_region_addr(self, address).map(|_| self)
    }

    fn iter(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self)
    }
}
