//! A thread's stack: heap memory with a guard page.

use crate::{Error, Result};
use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;

const PAGE: usize = 4096;

/// Memory for a stack. The tender takes its lowest page, the guard, away from the thread that runs on it.
pub(super) struct Stack {
    base: *mut u8,
    layout: Layout,
}

// SAFETY: heap memory has the same address in all machines.
unsafe impl Send for Stack {}

impl Stack {
    /// Allocates a stack of `bytes` bytes, at least three pages, and its guard.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`]: the size is no valid size of memory. [`Error::Full`]: the heap has no room.
    pub fn new(bytes: usize) -> Result<Self> {
        let bytes = bytes.checked_next_multiple_of(PAGE).and_then(|bytes| bytes.checked_add(PAGE));
        let layout =
            bytes.and_then(|bytes| Layout::from_size_align(bytes.max(4 * PAGE), PAGE).ok());
        let layout = layout.ok_or(Error::Argument)?;
        // SAFETY: the size is not 0.
        let base = unsafe { alloc(layout) };
        if base.is_null() {
            return Err(Error::Full);
        }
        Ok(Self { base, layout })
    }

    /// Address of the lowest byte, which is the guard's.
    pub fn base(&self) -> u64 {
        self.base as u64
    }

    /// Bytes, with the guard.
    pub fn bytes(&self) -> u64 {
        self.layout.size() as u64
    }

    /// Returns the memory to the heap.
    ///
    /// # Safety
    ///
    /// No thread runs on the stack, and none has borrowed from it.
    pub unsafe fn free(self) {
        // SAFETY: allocated with this layout; the rest is the caller's promise.
        unsafe { dealloc(self.base, self.layout) };
    }
}
