//! What lies in a ring: bytes that a peer may change while they are read.

use core::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a ring. Offsets are in bytes; nothing outside is ever touched.
///
/// No order between accesses: the ring's words see to that.
pub trait Data {
    /// How many.
    fn bytes(&self) -> usize;
    /// The word at `at`, a multiple of 8; 0 outside.
    fn load_word(&self, at: usize) -> u64;
    /// Sets the word at `at`, a multiple of 8; does nothing outside.
    fn store_word(&self, at: usize, value: u64);
    /// Copies from `at` on, as much as `to` takes; does nothing where that is not all inside.
    fn read(&self, at: usize, to: &mut [u8]);
    /// Copies `from` to `at`; does nothing where that is not all inside.
    fn write(&self, at: usize, from: &[u8]);
    /// These bytes are written soon: a hint, which changes nothing.
    fn expect_write(&self, _at: usize, _bytes: usize) {}
}

/// Whether `bytes` bytes at `at` are all inside `room`.
pub(crate) fn inside(room: usize, at: usize, bytes: usize) -> bool {
    at.checked_add(bytes).is_some_and(|end| end <= room)
}

impl<D: Data + ?Sized> Data for &D {
    fn bytes(&self) -> usize {
        (**self).bytes()
    }
    fn load_word(&self, at: usize) -> u64 {
        (**self).load_word(at)
    }
    fn store_word(&self, at: usize, value: u64) {
        (**self).store_word(at, value);
    }
    fn read(&self, at: usize, to: &mut [u8]) {
        (**self).read(at, to);
    }
    fn write(&self, at: usize, from: &[u8]) {
        (**self).write(at, from);
    }
    fn expect_write(&self, at: usize, bytes: usize) {
        (**self).expect_write(at, bytes);
    }
}

/// By whole words: the slow way, without unsafe code. For tests; payload in shared memory is [`crate::border::Bytes`].
/// Two writers of one word must not run at the same time.
impl Data for [AtomicU64] {
    fn bytes(&self) -> usize {
        self.len() * 8
    }
    fn load_word(&self, at: usize) -> u64 {
        self.get(at / 8).map_or(0, |word| word.load(Ordering::Relaxed))
    }
    fn store_word(&self, at: usize, value: u64) {
        if let Some(word) = self.get(at / 8) {
            word.store(value, Ordering::Relaxed);
        }
    }
    fn read(&self, at: usize, to: &mut [u8]) {
        if inside(self.bytes(), at, to.len()) {
            for (i, byte) in (at..).zip(to) {
                *byte = self.load_word(i).to_le_bytes()[i % 8];
            }
        }
    }
    fn write(&self, at: usize, from: &[u8]) {
        if inside(self.bytes(), at, from.len()) {
            for (i, byte) in (at..).zip(from) {
                let mut word = self.load_word(i).to_le_bytes();
                word[i % 8] = *byte;
                self.store_word(i, u64::from_le_bytes(word));
            }
        }
    }
}
