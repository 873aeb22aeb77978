//! Why a profile cannot be made or read.

use alloc::string::String;
use core::fmt;

/// Why there is no profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileError {
    /// The encoded profile breaks this rule.
    Malformed(&'static str),
    /// The kernel's type information breaks this rule.
    Btf(&'static str),
    /// `/proc/kallsyms` breaks this rule.
    Kallsyms(&'static str),
    /// `/proc/iomem` breaks this rule.
    Iomem(&'static str),
    /// This file shows zeros instead of addresses, because its reader lacks the privilege to see them.
    Hidden(&'static str),
    /// The kernel package's image breaks this rule.
    Image(&'static str),
    /// The kernel has no such symbol, member or constant.
    Missing(String),
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(rule) => write!(f, "the profile is malformed: {rule}"),
            Self::Btf(rule) => write!(f, "the kernel's type information is unusable: {rule}"),
            Self::Kallsyms(rule) => write!(f, "the kernel's symbols are unusable: {rule}"),
            Self::Iomem(rule) => write!(f, "the memory map is unusable: {rule}"),
            Self::Hidden(file) => write!(f, "{file} hides addresses"),
            Self::Image(rule) => write!(f, "the kernel's image is unusable: {rule}"),
            Self::Missing(name) => write!(f, "the kernel has no {name}"),
        }
    }
}

impl core::error::Error for ProfileError {}
