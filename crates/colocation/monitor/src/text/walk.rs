//! Bounded walks over Linux's lists.

use super::layout::List;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;

/// Maximum length of a list, more than any intact one has; further entries are ignored.
pub(super) const LIMIT: usize = 4096;

/// The bucket among `1 << bits` that holds an address (`hash_64` in Linux's `hash.h`).
pub(super) fn hash(address: u64, bits: u32) -> u64 {
    address.wrapping_mul(0x61c8_8646_80b5_83eb).checked_shr(64 - bits).unwrap_or(0)
}

/// The entries of a doubly linked list.
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
