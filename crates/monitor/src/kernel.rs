//! A kernel that is looked at: its profile and its memory.

use crate::memory::{KernelMemory, Page, PAGE_BYTES};
use crate::profile::Profile;
use core::sync::atomic::Ordering::Relaxed;

/// Linux as the checks see it. Addresses are Linux's virtual ones unless something else is said.
pub struct Kernel<'a, M> {
    /// Symbols and structure layouts.
    pub profile: &'a Profile<'a>,
    /// Its physical memory.
    pub memory: &'a M,
}

impl<M: KernelMemory> Kernel<'_, M> {
    /// The page that holds physical address `physical`, and the byte offset in it.
    fn page_of(&self, physical: u64) -> Option<(&Page, usize)> {
        let offset = physical % PAGE_BYTES;
        Some((self.memory.page(physical - offset)?, offset as usize))
    }

    /// The word at physical address `physical`, a multiple of 8.
    pub fn physical_word(&self, physical: u64) -> Option<u64> {
        let (page, offset) = self.page_of(physical)?;
        (offset % 8 == 0).then(|| page[offset / 8].load(Relaxed))
    }
}
