//! The program's memory as the process sees it.

use std::sync::atomic::{AtomicU8, Ordering};

use kyozon_typed_wasi::{Buffer, Errno, Memory};

/// A program's memory at an address of this process. Others may write to it at any time, so no reference to it is made:
/// it is copied byte by byte, or by the kernel.
#[derive(Debug)]
pub struct Region {
    start: *mut u8,
    bytes: usize,
}

impl Region {
    /// The memory from `start` on.
    ///
    /// # Safety
    ///
    /// `start` is not null. While the value exists, these bytes stay mapped, readable and writable, and no reference of
    /// Rust's is used to reach them.
    ///
    /// # Panics
    ///
    /// There are more than 2^32 bytes.
    pub unsafe fn new(start: *mut u8, bytes: usize) -> Region {
        assert!(bytes as u64 <= 1 << 32, "WASI has 32-bit addresses");
        Region { start, bytes }
    }

    /// The address of a range, if it lies inside.
    fn range(&self, at: u32, bytes: usize) -> Result<*mut u8, Errno> {
        match (at as usize).checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(self.start.wrapping_add(at as usize)),
            _ => Err(Errno::Fault),
        }
    }

    /// The bytes of a range.
    fn atoms(&self, at: u32, bytes: usize) -> Result<&[AtomicU8], Errno> {
        let start = self.range(at, bytes)?;
        // SAFETY: the range lies within the region, which stays mapped and is only reached by raw pointers. An AtomicU8
        // is laid out as a byte and may change.
        Ok(unsafe { std::slice::from_raw_parts(start.cast::<AtomicU8>(), bytes) })
    }

    /// Replaces a list by the ranges as the kernel takes them.
    pub(crate) fn vectors(
        &self,
        buffers: &[Buffer],
        vectors: &mut Vec<libc::iovec>,
    ) -> Result<(), Errno> {
        vectors.clear();
        for buffer in buffers {
            let iov_len = buffer.bytes as usize;
            let iov_base = self.range(buffer.at, iov_len)?.cast();
            vectors.push(libc::iovec { iov_base, iov_len });
        }
        Ok(())
    }
}

impl Memory for Region {
    fn size(&self) -> u64 {
        self.bytes as u64
    }

    fn read(&self, at: u32, into: &mut [u8]) -> Result<(), Errno> {
        let bytes = into.len();
        for (to, from) in into.iter_mut().zip(self.atoms(at, bytes)?) {
            *to = from.load(Ordering::Relaxed);
        }
        Ok(())
    }

    fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), Errno> {
        for (to, from) in self.atoms(at, bytes.len())?.iter().zip(bytes) {
            to.store(*from, Ordering::Relaxed);
        }
        Ok(())
    }
}
