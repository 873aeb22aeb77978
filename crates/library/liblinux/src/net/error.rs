//! Why a change of the network failed.

use crate::netlink::Refused;
use crate::Errno;
use std::{fmt, io};

/// Why a change of the network failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The error number.
    pub errno: Errno,
    text: String,
}

impl Error {
    pub(super) fn new(errno: i32, text: String) -> Self {
        Self { errno: Errno(errno), text }
    }

    /// The kernel refuses what `what` says.
    pub(super) fn refused(what: impl fmt::Display, refused: Refused) -> Self {
        let Refused { errno, words } = refused;
        let error = io::Error::from_raw_os_error(errno.0);
        let text = match words {
            Some(words) => format!("{what}: {words} ({error})"),
            None => format!("{what}: {error}"),
        };
        Self { errno, text }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}
