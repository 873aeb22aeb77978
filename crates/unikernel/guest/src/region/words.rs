//! The data of a region as atomic words.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

/// The words of a region that this machine has mapped for writing.
///
/// Another machine of the family may not have the region, so neither words nor references to them can be sent to it:
///
/// ```compile_fail,E0277
/// use kyozon_unikernel::{region, thread};
/// let words = region::find("board").unwrap().words().unwrap();
/// thread::scope(|scope| {
///     scope.spawn(|| words.at(0));
/// });
/// ```
///
/// ```compile_fail,E0277
/// use kyozon_unikernel::{region, thread};
/// use std::sync::atomic::Ordering;
/// let word = region::find("board").unwrap().words().unwrap().at(0);
/// thread::spawn(move || word.load(Ordering::Relaxed));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Words {
    first: *const AtomicU64,
    count: usize,
}

/// One of [`Words`].
#[derive(Clone, Copy, Debug)]
pub struct Word {
    word: *const AtomicU64,
    /// Neither `Send` nor `Sync`, whatever the type of the pointer.
    here: PhantomData<*const ()>,
}

impl Words {
    /// `count` words.
    ///
    /// # Safety
    ///
    /// The words are mapped for reading and writing, aligned, and accessed atomically. They stay mapped; or else an
    /// access to them ends the machine.
    pub(super) unsafe fn new(first: *const AtomicU64, count: usize) -> Self {
        Self { first, count }
    }

    /// Number of words.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The word `index`.
    ///
    /// # Panics
    ///
    /// Panics if the region has no such word.
    #[inline]
    pub fn at(&self, index: usize) -> Word {
        assert!(index < self.count, "word {index} of a region of {} words", self.count);
        // SAFETY: inside, as just checked.
        Word { word: unsafe { self.first.add(index) }, here: PhantomData }
    }
}

macro_rules! forward {
    ($($(#[$about:meta])* $name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        impl Word {
            $(
                $(#[$about])*
                #[inline]
                pub fn $name(&self, $($argument: $kind),*) -> $result {
                    // SAFETY: a word of `Words`. The reference ends with the call.
                    unsafe { &*self.word }.$name($($argument),*)
                }
            )*
        }
    };
}
forward! {
    /// [`AtomicU64::load`].
    load(order: Ordering) -> u64;
    /// [`AtomicU64::store`].
    store(value: u64, order: Ordering) -> ();
    /// [`AtomicU64::swap`].
    swap(value: u64, order: Ordering) -> u64;
    /// [`AtomicU64::compare_exchange`].
    compare_exchange(current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64>;
    /// [`AtomicU64::fetch_add`].
    fetch_add(value: u64, order: Ordering) -> u64;
    /// [`AtomicU64::fetch_sub`].
    fetch_sub(value: u64, order: Ordering) -> u64;
    /// [`AtomicU64::fetch_or`].
    fetch_or(bits: u64, order: Ordering) -> u64;
    /// [`AtomicU64::fetch_and`].
    fetch_and(bits: u64, order: Ordering) -> u64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use Ordering::Relaxed;

    #[test]
    fn each_word_is_reached_by_its_index() {
        let memory = [const { AtomicU64::new(5) }; 3];
        // SAFETY: atomics, which outlive their use.
        let words = unsafe { Words::new(memory.as_ptr(), memory.len()) };
        words.at(2).store(8, Relaxed);
        assert_eq!((words.count(), words.at(2).fetch_add(1, Relaxed)), (3, 8));
        assert_eq!(words.at(1).compare_exchange(5, 6, Relaxed, Relaxed), Ok(5));
        assert_eq!(memory.each_ref().map(|word| word.load(Relaxed)), [5, 6, 9]);
    }

    #[test]
    #[should_panic(expected = "word 3 of a region of 3 words")]
    fn a_word_outside_is_not_reached() {
        let memory = [const { AtomicU64::new(5) }; 3];
        // SAFETY: atomics, which outlive their use.
        unsafe { Words::new(memory.as_ptr(), memory.len()) }.at(3);
    }
}
