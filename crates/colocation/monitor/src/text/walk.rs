//! Bounded walks over Linux's lists.

pub(super) use crate::walk::entries as list;

/// Maximum length of a list, more than any intact one has; further entries are ignored.
pub(super) const LIMIT: usize = 4096;

/// The bucket among `1 << bits` that holds an address (`hash_64` in Linux's `hash.h`).
pub(super) fn hash(address: u64, bits: u32) -> u64 {
    address.wrapping_mul(0x61c8_8646_80b5_83eb).checked_shr(64 - bits).unwrap_or(0)
}
