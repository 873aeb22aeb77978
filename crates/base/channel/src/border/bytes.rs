//! Payload in shared memory.

use crate::data::{inside, Data};
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, AtomicU8, Ordering::Relaxed};

/// From this many bytes on, `rep movsb` is faster than a loop of words.
const LONG: usize = if cfg!(miri) { usize::MAX } else { 512 };

/// Bytes of a cache line.
const LINE: usize = 64;

/// Whether short copies use words if possible. Miri has no model of accesses of different widths to the same bytes.
const WORDS: bool = !cfg!(miri);

/// Bytes that a peer may change at any time. The address of the first is a multiple of 8.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a> {
    base: *mut u8,
    bytes: usize,
    lifetime: PhantomData<&'a UnsafeCell<u8>>,
}

// SAFETY: every access is atomic.
unsafe impl Send for Bytes<'_> {}
// SAFETY: as above.
unsafe impl Sync for Bytes<'_> {}

impl Bytes<'_> {
    /// The `bytes` bytes at `base`.
    ///
    /// # Safety
    ///
    /// The memory is mapped, readable, writable and aligned to 8; all other accesses to it are atomic.
    pub(super) unsafe fn new(base: *mut u8, bytes: usize) -> Self {
        Self { base, bytes, lifetime: PhantomData }
    }

    /// The address of the byte at `offset`; `None` if it lies outside. A caller that makes a reference from it trusts
    /// its peers not to change the bytes while the reference lives, as the protocol of [`crate::spsc`] demands.
    pub fn as_ptr(&self, offset: usize) -> Option<*mut u8> {
        (offset <= self.bytes).then(|| self.base.wrapping_add(offset))
    }

    fn part(&self, offset: usize, bytes: usize) -> Option<*mut u8> {
        inside(self.bytes, offset, bytes).then(|| self.base.wrapping_add(offset))
    }
}

impl Data for Bytes<'_> {
    fn bytes(&self) -> usize {
        self.bytes
    }

    #[inline]
    fn load_word(&self, offset: usize) -> u64 {
        let mut bytes = [0; 8];
        match self.part(offset, 8) {
            // SAFETY: inside and aligned; the memory is mapped.
            Some(place) if offset.is_multiple_of(8) && WORDS => unsafe {
                word(place).load(Relaxed)
            },
            Some(_) if offset.is_multiple_of(8) => {
                self.read(offset, &mut bytes);
                u64::from_ne_bytes(bytes)
            }
            _ => 0,
        }
    }

    #[inline]
    fn store_word(&self, offset: usize, value: u64) {
        match self.part(offset, 8) {
            // SAFETY: inside and aligned; the memory is mapped.
            Some(place) if offset.is_multiple_of(8) && WORDS => unsafe {
                word(place).store(value, Relaxed)
            },
            Some(_) if offset.is_multiple_of(8) => self.write(offset, &value.to_ne_bytes()),
            _ => {}
        }
    }

    #[inline]
    fn read(&self, offset: usize, to: &mut [u8]) {
        let Some(place) = self.part(offset, to.len()) else { return };
        if to.len() >= LONG {
            // SAFETY: both are mapped; a private buffer does not overlap the region.
            return unsafe { copy(to.as_mut_ptr(), place, to.len()) };
        }
        let whole = if offset.is_multiple_of(8) && WORDS { to.len() & !7 } else { 0 };
        let (words, rest) = to.split_at_mut(whole);
        for (i, chunk) in words.chunks_exact_mut(8).enumerate() {
            // SAFETY: inside; aligned, since `at` is and the memory's first byte.
            let word = unsafe { word(place.add(8 * i)).load(Relaxed) };
            chunk.copy_from_slice(&word.to_ne_bytes());
        }
        for (i, byte) in rest.iter_mut().enumerate() {
            // SAFETY: inside.
            *byte = unsafe { AtomicU8::from_ptr(place.add(whole + i)).load(Relaxed) };
        }
    }

    #[inline]
    fn write(&self, offset: usize, from: &[u8]) {
        let Some(place) = self.part(offset, from.len()) else { return };
        if from.len() >= LONG {
            // SAFETY: both are mapped; a private buffer does not overlap the region.
            return unsafe { copy(place, from.as_ptr(), from.len()) };
        }
        let whole = if offset.is_multiple_of(8) && WORDS { from.len() & !7 } else { 0 };
        let (words, rest) = from.split_at(whole);
        for (i, chunk) in words.chunks_exact(8).enumerate() {
            let value = u64::from_ne_bytes(chunk.try_into().unwrap_or_default());
            // SAFETY: inside; aligned, since `at` is and the memory's first byte.
            unsafe { word(place.add(8 * i)).store(value, Relaxed) };
        }
        for (i, byte) in rest.iter().enumerate() {
            // SAFETY: inside.
            unsafe { AtomicU8::from_ptr(place.add(whole + i)).store(*byte, Relaxed) };
        }
    }

    /// Prefetches the cache lines that begin in this range, for writing.
    #[inline]
    fn expect_write(&self, offset: usize, bytes: usize) {
        let Some(place) = self.part(offset, bytes) else { return };
        for line in (place.align_offset(LINE)..bytes).step_by(LINE) {
            prefetch_to_write(place.wrapping_add(line));
        }
    }
}

/// Prefetches a cache line for writing.
#[inline]
fn prefetch_to_write(line: *const u8) {
    if cfg!(miri) {
        return;
    }
    // SAFETY: a hint never faults (AMD APM volume 3, PREFETCH; Intel SDM volume 2, PREFETCHW). Processors with 64-bit
    // mode implement the instruction or ignore it.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
    }
}

/// The word at `place`.
///
/// # Safety
///
/// The memory is mapped, aligned to 8, and only accessed atomically.
unsafe fn word<'a>(place: *mut u8) -> &'a AtomicU64 {
    // SAFETY: as the caller promises.
    unsafe { AtomicU64::from_ptr(place.cast()) }
}

/// Copies like a loop of relaxed atomic byte accesses.
///
/// # Safety
///
/// Both ranges are mapped and do not overlap; no other thread accesses the private one.
unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: as the caller promises; the direction flag is clear in Rust code (System V ABI 3.2.1).
    unsafe {
        core::arch::asm!("rep movsb", inout("rcx") bytes => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn on_memory(body: impl Fn(Bytes<'_>)) {
        let words: Vec<AtomicU64> = (0..256).map(|_| AtomicU64::new(0)).collect();
        // SAFETY: the words live as long as the call and are accessed atomically.
        body(unsafe { Bytes::new(words.as_ptr() as *mut u8, 2048) });
    }

    #[test]
    fn writes_read_back_at_any_offset_and_length() {
        on_memory(|memory| {
            let lengths = [0, 1, 7, 8, 9, 63, 64, 511, 512, 513, 1000];
            let lengths = &lengths[..if cfg!(miri) { 7 } else { 11 }];
            let text: Vec<u8> = (0..2048).map(|i| (i * 7 + i / 256) as u8).collect();
            for at in [0, 1, 7, 8, 9, 500] {
                for &len in lengths {
                    memory.write(0, &[0xee; 2048]);
                    memory.write(at, &text[..len]);
                    let mut all = [0; 2048];
                    memory.read(0, &mut all);
                    assert_eq!(all[at..at + len], text[..len], "{at} {len}");
                    assert!(all[..at].iter().chain(&all[at + len..]).all(|byte| *byte == 0xee));
                    let mut part = vec![0; len];
                    memory.read(at, &mut part);
                    assert_eq!(part, text[..len], "{at} {len}");
                }
            }
        });
    }

    #[test]
    fn accesses_outside_do_nothing() {
        on_memory(|memory| {
            let mut buffer = [7; 600];
            for at in [2048, 2041, 1449, usize::MAX, usize::MAX - 599] {
                memory.write(at, &buffer);
                memory.read(at, &mut buffer);
                memory.store_word(at, 1);
                assert_eq!((memory.load_word(at), buffer), (0, [7; 600]));
            }
            memory.store_word(4, 1);
            assert_eq!(memory.load_word(0), 0);
            assert!(memory.as_ptr(2048).is_some() && memory.as_ptr(2049).is_none());
        });
    }
}
