//! A word of 8 bytes that several sides change: the atomics that locks and rings are written over.

use core::sync::atomic::{fence, AtomicU64, Ordering};

/// An atomic word. A model checker, or a peer that writes what it likes, stands here in tests.
///
/// Its default is zero, and zero is how every structure of this crate begins.
pub trait Word: Default {
    /// The value.
    fn load(&self, order: Ordering) -> u64;
    /// Sets the value.
    fn store(&self, value: u64, order: Ordering);
    /// Sets the value where it is `current`; `Err` with the value where it is another.
    fn replace(&self, current: u64, new: u64, order: Ordering) -> Result<u64, u64>;
    /// Sets the value, returns the one before.
    fn swap(&self, value: u64, order: Ordering) -> u64;
    /// Adds, wrapping; returns the value before.
    fn fetch_add(&self, value: u64, order: Ordering) -> u64;
    /// Sets bits, returns the value before.
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64;
    /// Keeps bits, returns the value before.
    fn fetch_and(&self, bits: u64, order: Ordering) -> u64;
    /// A fence over all words.
    fn fence(order: Ordering);
}

impl Word for AtomicU64 {
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
