//! A word of 8 bytes that several peers change: the atomics on which locks and rings are built.

use core::sync::atomic::{fence, AtomicU64, Ordering};

/// An atomic word. Tests replace it by a model checker's word, or by one that a hostile peer writes to.
///
/// Its default is zero, the initial state of every structure in this crate.
///
/// # Safety
///
/// Safe code gets exclusive access to data by a lock of words. Each method must be atomic and do what it says, except
/// as far as a peer changes the word meanwhile.
#[allow(unsafe_code)]
pub unsafe trait Word: Default {
    /// Returns the value.
    fn load(&self, order: Ordering) -> u64;
    /// Sets the value.
    fn store(&self, value: u64, order: Ordering);
    /// Sets the value to `new` if it is `current`; otherwise fails with the present value. A failed call is relaxed.
    fn replace(&self, current: u64, new: u64, order: Ordering) -> Result<u64, u64>;
    /// Sets the value; returns the previous one.
    fn swap(&self, value: u64, order: Ordering) -> u64;
    /// Adds, wrapping; returns the previous value.
    fn fetch_add(&self, value: u64, order: Ordering) -> u64;
    /// Sets bits; returns the previous value.
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64;
    /// Clears all other bits; returns the previous value.
    fn fetch_and(&self, bits: u64, order: Ordering) -> u64;
    /// A fence over all words.
    fn fence(order: Ordering);
}

// SAFETY: the processor's atomic instructions.
#[allow(unsafe_code)]
unsafe impl Word for AtomicU64 {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }
    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }
    #[inline]
    fn replace(&self, current: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        self.compare_exchange(current, new, order, Ordering::Relaxed)
    }
    #[inline]
    fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.swap(value, order)
    }
    #[inline]
    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        self.fetch_add(value, order)
    }
    #[inline]
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
        self.fetch_or(bits, order)
    }
    #[inline]
    fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
        self.fetch_and(bits, order)
    }
    #[inline]
    fn fence(order: Ordering) {
        fence(order);
    }
}
