//! Bounded walks over Linux's lists.

pub(super) use crate::walk::{entries as list, hash};

/// Maximum length of a list, more than any intact one has; further entries are ignored.
pub(super) const LIMIT: usize = 4096;
