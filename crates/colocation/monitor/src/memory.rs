//! Where Linux's memory comes from.

use core::sync::atomic::AtomicU64;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;
/// Words of a page.
pub const PAGE_WORDS: usize = 512;

/// A page as it is read: whoever owns it may be writing it at the same time.
pub type Page = [AtomicU64; PAGE_WORDS];

/// The physical memory of a Linux: live through the layer's window, or from a dump.
pub trait KernelMemory {
    /// The page at physical address `physical`, a multiple of [`PAGE_BYTES`]; `None` where there is no System RAM.
    fn page(&self, physical: u64) -> Option<&Page>;
}
