//! Shared memory as words of 8 bytes, by index.

use core::sync::atomic::{fence, AtomicU64, Ordering};

/// Memory that can be read.
pub trait Load {
    /// Number of words.
    fn words(&self) -> usize;
    /// Relaxed load of the word at `index`; 0 if it lies outside.
    fn load(&self, index: usize) -> u64;
    /// Acquire fence: every earlier load is ordered before all that follows.
    fn acquire(&self);
}

/// Memory that can also be written.
pub trait Store: Load {
    /// Relaxed store to the word at `index`; does nothing if it lies outside.
    fn store(&self, index: usize, value: u64);
    /// Release fence: all that precedes is ordered before every later store.
    fn release(&self);
}

impl<M: Load + ?Sized> Load for &M {
    fn words(&self) -> usize {
        (**self).words()
    }
    fn load(&self, index: usize) -> u64 {
        (**self).load(index)
    }
    fn acquire(&self) {
        (**self).acquire();
    }
}

impl<M: Store + ?Sized> Store for &M {
    fn store(&self, index: usize, value: u64) {
        (**self).store(index, value);
    }
    fn release(&self) {
        (**self).release();
    }
}

impl Load for [AtomicU64] {
    fn words(&self) -> usize {
        self.len()
    }
    fn load(&self, index: usize) -> u64 {
        self.get(index).map_or(0, |word| word.load(Ordering::Relaxed))
    }
    fn acquire(&self) {
        fence(Ordering::Acquire);
    }
}

impl Store for [AtomicU64] {
    fn store(&self, index: usize, value: u64) {
        if let Some(word) = self.get(index) {
            word.store(value, Ordering::Relaxed);
        }
    }
    fn release(&self) {
        fence(Ordering::Release);
    }
}

/// The whole words in the `bytes` bytes at `base`; `None` if `base` is null or not a multiple of 8.
///
/// # Safety
///
/// The memory must stay mapped as long as the result lives. All code in this address space must write to it by atomic
/// words. If it is mapped read-only, the caller must not use the result as [`Store`].
#[allow(unsafe_code)]
pub unsafe fn shared<'a>(base: *const u8, bytes: u64) -> Option<&'a [AtomicU64]> {
    let first = base.cast::<AtomicU64>();
    let words = usize::try_from(bytes / size_of::<AtomicU64>() as u64).ok()?;
    if first.is_null() || !first.is_aligned() || words > isize::MAX as usize / 8 {
        return None;
    }
    // SAFETY: the alignment is checked, the caller promises the mapping, and atomics may be shared.
    Some(unsafe { core::slice::from_raw_parts(first, words) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(unsafe_code)]
    fn only_aligned_whole_words_become_memory() {
        let words = [AtomicU64::new(1), AtomicU64::new(2)];
        let base = words.as_ptr().cast::<u8>();
        // SAFETY: the addresses lie in the array, or are refused.
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
