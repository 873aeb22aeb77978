//! Statics with one owner.

use core::cell::UnsafeCell;

/// A static that one kind of code on one CPU owns.
#[repr(transparent)]
pub(crate) struct Owned<T>(UnsafeCell<T>);

// SAFETY: one CPU; each static names its owner, and `get` is unsafe.
unsafe impl<T> Sync for Owned<T> {}

impl<T> Owned<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// # Safety
    ///
    /// The caller is the owner, and holds no other reference.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn get(&self) -> &mut T {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.0.get() }
    }
}
