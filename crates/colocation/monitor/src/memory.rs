//! Access to Linux's physical memory.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use kyozon_abi::layer::LinuxRegisters;

/// Bytes in a page.
pub const PAGE_BYTES: u64 = 4096;
/// 64-bit words in a page.
pub const PAGE_WORDS: usize = 512;

/// Words of which [`KernelMemory::differing_blocks`] tells whether one differs.
pub const BLOCK_WORDS: usize = 8;

/// A page of Linux's memory. Linux may write it at any time, hence atomics.
pub type Page = [AtomicU64; PAGE_WORDS];

/// The physical memory of a Linux kernel: live through the layer's window, or from a dump.
pub trait KernelMemory {
    /// System registers of a CPU, as Linux left them; `None` if they are not known.
    fn registers(&self) -> Option<LinuxRegisters> {
        None
    }

    /// System registers of another CPU, if one has shown them since the last tick.
    fn other_registers(&self) -> Option<LinuxRegisters> {
        None
    }

    /// The page at physical address `physical`, a multiple of [`PAGE_BYTES`]; `None` if that is not System RAM.
    fn page(&self, physical: u64) -> Option<&Page>;

    /// The same for a reader of its `words` alone: the others may be older, or not there yet.
    fn part(&self, physical: u64, _words: Range<usize>) -> Option<&Page> {
        self.page(physical)
    }

    /// Whether the page at `physical` has other words than `copy`; `None` if [`page`](Self::page) has none.
    fn differs(&self, physical: u64, copy: &[u64; PAGE_WORDS]) -> Option<bool> {
        Some(differences(self.page(physical)?, copy) != 0)
    }

    /// The blocks of [`BLOCK_WORDS`] in which the page at `physical` has other words than `copy`: a bit for each, the
    /// lowest for the first. `None` if [`page`](Self::page) has none.
    fn differing_blocks(&self, physical: u64, copy: &[u64; PAGE_WORDS]) -> Option<u64> {
        let pairs =
            self.page(physical)?.chunks_exact(BLOCK_WORDS).zip(copy.chunks_exact(BLOCK_WORDS));
        Some(pairs.rev().fold(0, |all, (live, copy)| {
            let differs = live.iter().zip(copy).any(|(live, copy)| live.load(Relaxed) != *copy);
            all << 1 | u64::from(differs)
        }))
    }

    /// Something was to be read at the virtual `address`, where nothing is mapped.
    fn lacks(&self, _address: u64) {}
}

/// A sum of `word` and of those before it, whose own is `sum`: another word gives another sum, nearly always.
pub(crate) fn mixed(sum: u64, word: u64) -> u64 {
    /// An odd number with many bits, which spreads what is multiplied by it.
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    sum.rotate_left(7).wrapping_mul(MIX) ^ word
}

/// Zero if all words are equal. Three instructions per word.
#[inline(never)]
pub(crate) fn differences(live: &Page, copy: &[u64; PAGE_WORDS]) -> u64 {
    let mut different = 0;
    for (live, copy) in live.chunks_exact(32).zip(copy.chunks_exact(32)) {
        for (live, copy) in live.iter().zip(copy) {
            different |= live.load(Relaxed) ^ copy;
        }
    }
    different
}
