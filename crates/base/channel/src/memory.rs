//! Shared memory as words of 8 bytes, by index.

use core::sync::atomic::{fence, AtomicU64, Ordering};

/// Memory that can be read.
pub trait Load {
    /// Words of it.
    fn words(&self) -> usize;
    /// The word at `at`, relaxed; 0 outside.
    fn load(&self, at: usize) -> u64;
    /// Acquire fence: what was loaded before comes before all that follows.
    fn acquire(&self);
}

/// Memory that can be written, too.
pub trait Store: Load {
    /// Writes the word at `at`, relaxed; does nothing outside.
    fn store(&self, at: usize, value: u64);
    /// Release fence: all that precedes comes before what is stored later.
    fn release(&self);
}

impl<M: Load + ?Sized> Load for &M {
    fn words(&self) -> usize {
        (**self).words()
    }
    fn load(&self, at: usize) -> u64 {
        (**self).load(at)
    }
    fn acquire(&self) {
        (**self).acquire();
    }
}

impl<M: Store + ?Sized> Store for &M {
    fn store(&self, at: usize, value: u64) {
        (**self).store(at, value);
    }
    fn release(&self) {
        (**self).release();
    }
}

impl Load for [AtomicU64] {
    fn words(&self) -> usize {
        self.len()
    }
    fn load(&self, at: usize) -> u64 {
        self.get(at).map_or(0, |word| word.load(Ordering::Relaxed))
    }
    fn acquire(&self) {
        fence(Ordering::Acquire);
    }
}

impl Store for [AtomicU64] {
    fn store(&self, at: usize, value: u64) {
        if let Some(word) = self.get(at) {
            word.store(value, Ordering::Relaxed);
        }
    }
    fn release(&self) {
        fence(Ordering::Release);
    }
}

/// The whole words of `bytes` bytes at `base`; `None` where `base` is null or not a multiple of 8.
///
/// # Safety
///
/// The memory must be mapped as long as the result lives, and whoever writes to it in this address space must do so by
/// atomic words. Where it is mapped read-only, the result must not be used as [`Store`].
#[allow(unsafe_code)]
pub unsafe fn shared<'a>(base: *const u8, bytes: u64) -> Option<&'a [AtomicU64]> {
    let first = base.cast::<AtomicU64>();
    let words = usize::try_from(bytes / size_of::<AtomicU64>() as u64).ok()?;
    if first.is_null() || !first.is_aligned() || words > isize::MAX as usize / 8 {
        return None;
    }
    // SAFETY: aligned and mapped, as was checked and promised; atomics may be shared.
    Some(unsafe { core::slice::from_raw_parts(first, words) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(unsafe_code)]
    fn only_what_can_hold_words_is_memory() {
        let words = [AtomicU64::new(1), AtomicU64::new(2)];
        let base = words.as_ptr().cast::<u8>();
        // SAFETY: the array, and addresses that are refused.
        let (whole, odd, none, cut) = unsafe {
            let odd = shared(base.wrapping_add(1), 8);
            (shared(base, 16).unwrap(), odd, shared(core::ptr::null(), 8), shared(base, 15))
        };
        assert_eq!((whole.words(), whole.load(1), whole.load(2)), (2, 2, 0));
        whole.store(2, 3);
        assert!(odd.is_none() && none.is_none());
        assert_eq!(cut.unwrap().words(), 1);
    }
}
