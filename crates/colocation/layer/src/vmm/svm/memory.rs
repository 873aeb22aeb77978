//! Locks, and pages for the hypervisor's tables.

use super::entry::{at, entry};
use crate::frames::Frames;
use crate::vmm::nested::PAGE;
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

/// A value for one CPU at a time.
pub struct Lock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `taken` admits one CPU at a time.
unsafe impl<T> Sync for Lock<T> {}

/// The right to use a locked value.
pub struct Guard<'a, T>(&'a Lock<T>);

impl<T> Lock<T> {
    /// A free lock.
    pub const fn new(value: T) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock. Its holder is in the host, and does not wait for anything there.
    pub fn lock(&self) -> Guard<'_, T> {
        while self.taken.swap(true, Acquire) {
            core::hint::spin_loop();
        }
        Guard(self)
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the lock is ours.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is ours.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.0.taken.store(false, Release);
    }
}

/// The free pages of the reserve, and access to tables at any address.
pub struct Pool {
    next: usize,
    used: u64,
    pages: u64,
}

impl Pool {
    /// Bytes handed out.
    pub fn bytes(&self) -> u64 {
        self.pages * PAGE
    }
}

impl Frames for Pool {
    fn page(&mut self) -> Option<u64> {
        let e = entry();
        while self.next < e.pool_count as usize {
            let range = e.pool[self.next];
            if self.used < range.bytes {
                let page = range.base + self.used;
                self.used += PAGE;
                self.pages += 1;
                // SAFETY: the hypervisor's free memory.
                unsafe { at::<u8>(page).write_bytes(0, PAGE as usize) };
                return Some(page);
            }
            (self.next, self.used) = (self.next + 1, 0);
        }
        None
    }

    fn entry(&mut self, table: u64, index: usize) -> &mut u64 {
        // SAFETY: a table from `page`, and one of its 512 entries.
        unsafe { &mut *at::<u64>(table).add(index & 511) }
    }

    fn copy(&mut self, to: u64, from: u64) {
        // SAFETY: two tables from `page`.
        unsafe { at::<[u64; 512]>(to).copy_from(at(from), 1) };
    }
}

/// Pages, and the right to change nested tables.
pub static POOL: Lock<Pool> = Lock::new(Pool { next: 0, used: 0, pages: 0 });
