//! Memory for rings, zero to begin with.

use alloc::vec::Vec;
use kyozon_channel::border::{Bytes, Region};
use kyozon_channel::spsc::{Control, HEADER};

/// As rings are aligned.
#[derive(Clone, Copy)]
#[repr(align(128))]
struct Lines(#[allow(dead_code)] [u8; 128]);

/// Rings of one size.
pub struct Memory {
    base: *mut Lines,
    lines: usize,
    /// Bytes of a ring's data.
    bytes: usize,
}

// SAFETY: it is given out as rings only, which any number of threads may have.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// So many rings with so many bytes of data each, a power of two.
    pub fn new(rings: usize, bytes: usize) -> Self {
        let lines = rings * (HEADER + bytes) / size_of::<Lines>();
        let memory = alloc::vec![Lines([0; 128]); lines].into_boxed_slice();
        Self { base: alloc::boxed::Box::into_raw(memory).cast(), lines, bytes }
    }

    /// A ring, by its number.
    ///
    /// # Panics
    ///
    /// Where there is none.
    pub fn ring(&self, number: usize) -> (&Control, Bytes<'_>) {
        let bytes = self.lines * size_of::<Lines>();
        // SAFETY: this structure's memory, as long as that lives, which is used in no other way.
        let region = unsafe { Region::new(self.base.cast(), bytes) };
        region.spsc(number * (HEADER + self.bytes), self.bytes).expect("there is such a ring")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let memory = core::ptr::slice_from_raw_parts_mut(self.base, self.lines);
        // SAFETY: made by `new`, and nobody has a ring any more.
        drop(unsafe { Vec::from(alloc::boxed::Box::from_raw(memory)) });
    }
}
