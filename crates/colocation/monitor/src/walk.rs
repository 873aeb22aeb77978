//! Walks over Linux's data structures. Each ends after a bounded number of steps, whatever the memory holds.

mod areas;
mod list;
mod mappings;
#[cfg(test)]
mod tests;
mod tree;
mod xarray;

use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::{Profile, ProfileError};
use alloc::format;

pub(crate) use areas::{is_in_mask, Areas};
pub use list::{HashWalk, ListWalk, Lists};
pub(crate) use mappings::{scan_mappings, Mapping};
pub(crate) use tree::Trees;
pub use xarray::{SlotPath, XArrayEntry, XArrays};

/// Maximum length of a chain or list, more than any intact one has; further entries are ignored.
const MAX_CHAIN: usize = 4096;

/// A circular list: address of the head, offset of the link in an entry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct List {
    pub head: u64,
    pub link: u64,
}

/// The entries of `list`, in the order of its links.
pub(crate) fn entries<'k, M: KernelMemory>(
    kernel: &'k Kernel<'_, M>,
    list: List,
) -> impl Iterator<Item = u64> + 'k {
    let mut at = kernel.u64(list.head);
    core::iter::from_fn(move || {
        let link = at.filter(|&link| link != list.head && link != 0)?;
        at = kernel.u64(link);
        Some(link.wrapping_sub(list.link))
    })
    .take(MAX_CHAIN)
}

/// Why a walk could not be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkError {
    /// A pointer to this address, which is unreadable or holds another kind of object.
    WildPointer(u64),
    /// More elements than the limit; a cycle has this effect.
    TooLong,
}

/// Byte offset of the member `path` of `structure`.
///
/// # Errors
///
/// [`ProfileError::Missing`] if the profile has no such member.
pub(crate) fn offset(
    profile: &Profile<'_>,
    structure: &str,
    path: &str,
) -> Result<u64, ProfileError> {
    let field = profile.field(structure, path);
    field
        .map(|field| field.offset)
        .ok_or_else(|| ProfileError::Missing(format!("member {structure}.{path}")))
}

/// The bucket among `1 << bits` that holds an address (`hash_64` in Linux's `hash.h`).
pub(crate) fn hash(address: u64, bits: u32) -> u64 {
    address.wrapping_mul(0x61c8_8646_80b5_83eb).checked_shr(64 - bits).unwrap_or(0)
}

/// The entries of a null-terminated chain: `first` is the address of the first pointer, `next` the offset of the
/// pointer in each entry.
pub(crate) fn chain<'k, M: KernelMemory>(
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
    .take(MAX_CHAIN)
}
