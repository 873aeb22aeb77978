//! Memory for rings, zeroed at first.

use alloc::vec::Vec;
use kyozon_channel::border::{Bytes, Region};
use kyozon_channel::spsc::{Control, HEADER};

/// The alignment of a ring.
#[derive(Clone, Copy)]
#[repr(align(128))]
struct Lines(#[allow(dead_code)] [u8; 128]);

/// Memory for a number of rings of one size.
pub struct Rings {
    base: *mut Lines,
    lines: usize,
    /// Bytes of one ring's data.
    bytes: usize,
}

// SAFETY: the memory is handed out as rings only, which any number of threads may use.
unsafe impl Send for Rings {}
// SAFETY: as above.
unsafe impl Sync for Rings {}

impl Rings {
    /// Allocates `count` rings with `bytes` bytes of data each, a power of two.
    pub fn new(count: usize, bytes: usize) -> Self {
        let lines = count * (HEADER + bytes) / size_of::<Lines>();
        let memory = alloc::vec![Lines([0; 128]); lines].into_boxed_slice();
        Self { base: alloc::boxed::Box::into_raw(memory).cast(), lines, bytes }
    }

    /// The ring at position `index`: its control block and its data.
    ///
    /// # Panics
    ///
    /// Panics if there is no ring at that position.
    pub fn ring(&self, index: usize) -> (&Control, Bytes<'_>) {
        let bytes = self.lines * size_of::<Lines>();
        // SAFETY: this structure owns the memory, lives as long as the borrow, and uses it in no other way.
        let region = unsafe { Region::new(self.base.cast(), bytes) };
        region.spsc(index * (HEADER + self.bytes), self.bytes).expect("there is such a ring")
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        let memory = core::ptr::slice_from_raw_parts_mut(self.base, self.lines);
        // SAFETY: allocated by `new`; no ring is borrowed any more.
        drop(unsafe { Vec::from(alloc::boxed::Box::from_raw(memory)) });
    }
}
