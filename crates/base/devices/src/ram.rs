//! Memory of this process as a guest's memory, at its own addresses.
//!
//! A Linux kernel that runs as a library uses process addresses as physical addresses. Its RAM is one range.

use vm_memory::bitmap::BS;
use vm_memory::guest_memory::{Error, Result};
use vm_memory::{
    GuestAddress, GuestMemoryBackend, GuestMemoryRegion, GuestMemoryRegionBytes, GuestUsize,
    MemoryRegionAddress, VolatileSlice,
};

/// A range of this process's memory.
#[derive(Clone, Copy, Debug)]
pub struct Ram {
    start: usize,
    bytes: usize,
}

impl Ram {
    /// The `bytes` bytes at `start`.
    ///
    /// # Safety
    ///
    /// The range is readable and writable until the last copy of the result is gone, and there are no Rust references
    /// to any part of it.
    pub unsafe fn new(start: *mut u8, bytes: usize) -> Self {
        Self { start: start.expose_provenance(), bytes }
    }
}

impl GuestMemoryRegion for Ram {
    type B = ();

    fn len(&self) -> GuestUsize {
        self.bytes as u64
    }

    fn start_addr(&self) -> GuestAddress {
        GuestAddress(self.start as u64)
    }

    fn bitmap(&self) -> BS<'_, ()> {}

    fn get_slice(&self, offset: MemoryRegionAddress, count: usize) -> Result<VolatileSlice<'_>> {
        let end = offset.0.checked_add(count as u64);
        if end.is_none_or(|end| end > self.bytes as u64) {
            return Err(Error::InvalidBackendAddress);
        }
        let at = std::ptr::with_exposed_provenance_mut(self.start + offset.0 as usize);
        // SAFETY: the range was checked, and `new`'s caller keeps it mapped and free of references.
        Ok(unsafe { VolatileSlice::new(at, count) })
    }
}

impl GuestMemoryRegionBytes for Ram {}

impl GuestMemoryBackend for Ram {
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

#[cfg(test)]
mod tests;
