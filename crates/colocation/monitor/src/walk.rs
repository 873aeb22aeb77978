//! Walks over Linux's data structures: each ends after a bounded number of steps, whatever the memory holds.

mod list;
#[cfg(test)]
mod tests;
mod xarray;

use crate::profile::{Profile, ProfileError};
use alloc::format;

pub use list::{HashWalk, ListWalk, Lists};
pub use xarray::{SlotPath, XArrayEntry, XArrays};

/// Why a walk ended before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkError {
    /// A pointer leads to this address, which cannot be read or is no such object.
    WildPointer(u64),
    /// There are more elements than there may be; a cycle looks like this.
    TooLong,
}

/// Byte offset of a member that the profile must have.
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
