//! Bounded walks over Linux's lists.

use super::layout::List;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;

/// More entries than any honest list has; what lies behind them is not looked at.
pub(super) const LIMIT: usize = 4096;

/// In which of `1 << bits` buckets an address lies (`hash_64` of Linux's `hash.h`).
pub(super) fn hash(address: u64, bits: u32) -> u64 {
    address.wrapping_mul(0x61c8_8646_80b5_83eb).checked_shr(64 - bits).unwrap_or(0)
}

/// The entries of a doubly linked list, by address.
pub(super) fn list<'k, M: KernelMemory>(
    kernel: &'k Kernel<'_, M>,
    list: List,
) -> impl Iterator<Item = u64> + 'k {
    let mut at = kernel.u64(list.head);
    core::iter::from_fn(move || {
        let link = at.filter(|&link| link != list.head && link != 0)?;
        at = kernel.u64(link);
        Some(link.wrapping_sub(list.link))
    })
    .take(LIMIT)
}

/// The entries of a chain that begins with the pointer at `first` and goes on by the pointer at `next` in each, until a
/// null pointer.
pub(super) fn chain<'k, M: KernelMemory>(
    kernel: &'k Kernel<'_, M>,
    first: u64,
    next: u64,
) -> impl Iterator<Item = u64> + 'k {
    let mut at = kernel.u64(first);
    core::iter::from_fn(move || {
        let entry = at.filter(|&entry| entry != 0)?;
        at = kernel.u64(entry.wrapping_add(next));
        Some(entry)
    })
    .take(LIMIT)
}
