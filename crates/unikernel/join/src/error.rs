//! Why a group could not be met.

use std::{fmt, io};

/// Why a group could not be met, or would not do something.
#[derive(Debug)]
pub enum Error {
    /// There is no folder where groups could be.
    NoPlace(String),
    /// There is no such group.
    NoGroup(String),
    /// It is somebody else's.
    NotYours(String),
    /// The group said no, and why.
    Refused(String),
    /// The group is gone.
    Gone,
    /// The system said no: to what, and why.
    System(&'static str, io::Error),
}

/// What is done, or why not.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlace(why) | Self::Refused(why) => f.write_str(why),
            Self::NoGroup(name) => {
                write!(f, "there is no group {name} (kyozon ps shows those there are)")
            }
            Self::NotYours(name) => write!(f, "the group {name} is not yours"),
            Self::Gone => f.write_str("the group is gone"),
            Self::System(what, error) => write!(f, "cannot {what}: {error}"),
        }
    }
}

impl std::error::Error for Error {}

/// Says what the system was asked for.
pub(crate) trait What<T> {
    /// With these words behind "cannot".
    fn what(self, what: &'static str) -> Result<T>;
}

impl<T, E: Into<io::Error>> What<T> for std::result::Result<T, E> {
    fn what(self, what: &'static str) -> Result<T> {
        self.map_err(|error| Error::System(what, error.into()))
    }
}
