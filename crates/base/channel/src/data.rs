//! The payload of a ring: bytes that a peer may change while they are read.

use core::sync::atomic::{AtomicU64, Ordering};

/// A ring's data. Offsets are in bytes; nothing outside the data is ever accessed.
///
/// The accesses have no order among themselves: the ring's control words establish it.
pub trait Data {
    /// Number of bytes.
    fn bytes(&self) -> usize;
    /// Returns the word at `offset`, a multiple of 8; 0 if it lies outside.
    fn load_word(&self, offset: usize) -> u64;
    /// Sets the word at `offset`, a multiple of 8; does nothing if it lies outside.
    fn store_word(&self, offset: usize, value: u64);
    /// Fills `to` from `offset` on; does nothing unless the whole range lies inside.
    fn read(&self, offset: usize, to: &mut [u8]);
    /// Copies `from` to `offset`; does nothing unless the whole range lies inside.
    fn write(&self, offset: usize, from: &[u8]);
    /// Hints that these bytes will be written soon; has no other effect.
    fn expect_write(&self, _offset: usize, _bytes: usize) {}
}

/// Whether `bytes` bytes at `at` are all inside `room`.
pub(crate) fn inside(room: usize, offset: usize, bytes: usize) -> bool {
    offset.checked_add(bytes).is_some_and(|end| end <= room)
}

impl<D: Data + ?Sized> Data for &D {
    fn bytes(&self) -> usize {
        (**self).bytes()
    }
    fn load_word(&self, offset: usize) -> u64 {
        (**self).load_word(offset)
    }
    fn store_word(&self, offset: usize, value: u64) {
        (**self).store_word(offset, value);
    }
    fn read(&self, offset: usize, to: &mut [u8]) {
        (**self).read(offset, to);
    }
    fn write(&self, offset: usize, from: &[u8]) {
        (**self).write(offset, from);
    }
    fn expect_write(&self, offset: usize, bytes: usize) {
        (**self).expect_write(offset, bytes);
    }
}

/// Byte access through whole words: slow, but without unsafe code. It is for tests; payload in shared memory is
/// [`crate::border::Bytes`]. Two writers of one word must not run at the same time.
impl Data for [AtomicU64] {
    fn bytes(&self) -> usize {
        self.len() * 8
    }
    fn load_word(&self, offset: usize) -> u64 {
        self.get(offset / 8).map_or(0, |word| word.load(Ordering::Relaxed))
    }
    fn store_word(&self, offset: usize, value: u64) {
        if let Some(word) = self.get(offset / 8) {
            word.store(value, Ordering::Relaxed);
        }
    }
    fn read(&self, offset: usize, to: &mut [u8]) {
        if inside(self.bytes(), offset, to.len()) {
            for (i, byte) in (offset..).zip(to) {
                *byte = self.load_word(i).to_le_bytes()[i % 8];
            }
        }
    }
    fn write(&self, offset: usize, from: &[u8]) {
        if inside(self.bytes(), offset, from.len()) {
            for (i, byte) in (offset..).zip(from) {
                let mut word = self.load_word(i).to_le_bytes();
                word[i % 8] = *byte;
                self.store_word(i, u64::from_le_bytes(word));
            }
        }
    }
}
