//! Errors of groups and their folders.

use std::{fmt, io};

/// Why a group cannot be reached, or refuses a request.
#[derive(Debug)]
pub enum Error {
    /// There is no folder for groups, for this reason.
    NoPlace(String),
    /// There is no group of this name.
    NoGroup(String),
    /// The group of this name belongs to another user.
    NotYours(String),
    /// The request was refused, for this reason.
    Refused(String),
    /// The group is over.
    Gone,
    /// A system call failed: the purpose, as in "cannot PURPOSE", and the error.
    System(&'static str, io::Error),
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlace(reason) | Self::Refused(reason) => f.write_str(reason),
            Self::NoGroup(name) => {
                write!(f, "there is no group {name}: kyozon ps lists the groups")
            }
            Self::NotYours(name) => write!(f, "the group {name} belongs to another user"),
            Self::Gone => f.write_str("the group is gone"),
            Self::System(purpose, error) => write!(f, "cannot {purpose}: {error}"),
        }
    }
}

impl std::error::Error for Error {}

/// Adds the purpose of a system call to its error.
pub(crate) trait Context<T> {
    /// Completes "cannot ..." with `purpose`.
    fn context(self, purpose: &'static str) -> Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, purpose: &'static str) -> Result<T> {
        self.map_err(|error| Error::System(purpose, error.into()))
    }
}
