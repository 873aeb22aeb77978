//! Errors of the tender.
//!
//! [`Error`]'s text is one complete line: what is wrong, then what to do. Its causes are part of that line, so that
//! [`std::error::Error::source`] has none.

use std::{fmt, io};

/// Why a run failed.
#[derive(Debug)]
pub enum Error {
    /// An option has a value that cannot be used.
    Options(String),
    /// The image cannot be read or run.
    Image(String),
    /// A region cannot be made as the operator requests.
    Region(String),
    /// A device cannot be made as the operator requests.
    Device(String),
    /// The group refuses this run, or its keeper breaks the protocol.
    Group(String),
    /// The backend cannot run guests on this host, or cannot continue one.
    Backend(String),
    /// The group cannot be reached.
    Join(kyozon_join::Error),
    /// A system call failed.
    System(io::Error),
    /// A library call failed: Landlock, or an access to mapped memory.
    Library(String),
    /// The tender broke one of its own invariants.
    Internal(String),
    /// The failed operation, and the cause.
    Context(String, Box<Error>),
}

/// A result of the tender.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(why)
            | Self::Image(why)
            | Self::Region(why)
            | Self::Device(why)
            | Self::Group(why)
            | Self::Backend(why)
            | Self::Library(why)
            | Self::Internal(why) => f.write_str(why),
            Self::Join(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
            Self::Context(what, why) => write!(f, "{what}: {why}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<kyozon_bpf::Error> for Error {
    fn from(error: kyozon_bpf::Error) -> Self {
        Self::Internal(error.to_string())
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<rustix::io::Errno> for Error {
    fn from(error: rustix::io::Errno) -> Self {
        Self::System(error.into())
    }
}

/// Errors of KVM and of event descriptors.
impl From<vmm_sys_util::errno::Error> for Error {
    fn from(error: vmm_sys_util::errno::Error) -> Self {
        Self::System(error.into())
    }
}

impl From<kyozon_join::Error> for Error {
    fn from(error: kyozon_join::Error) -> Self {
        Self::Join(error)
    }
}

/// Errors of libraries that no caller distinguishes.
macro_rules! library {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::Library(error.to_string())
            }
        })*
    };
}

library!(
    landlock::PathFdError,
    landlock::RulesetError,
    std::sync::mpsc::RecvError,
    vm_memory::VolatileMemoryError,
    vm_memory::mmap::MmapRegionError,
);

/// Adds the failed operation to an error.
pub(crate) trait Context<T> {
    /// Puts `what` and a colon before the cause.
    fn context(self, what: impl Into<String>) -> Result<T>;

    /// As [`Context::context`], for text that is made only if there is an error.
    fn with_context<W: Into<String>>(self, what: impl FnOnce() -> W) -> Result<T>;
}

impl<T, E: Into<Error>> Context<T> for Result<T, E> {
    fn context(self, what: impl Into<String>) -> Result<T> {
        self.map_err(|why| Error::Context(what.into(), Box::new(why.into())))
    }

    fn with_context<W: Into<String>>(self, what: impl FnOnce() -> W) -> Result<T> {
        self.map_err(|why| Error::Context(what().into(), Box::new(why.into())))
    }
}

/// Reports `None` as a broken invariant of the tender.
pub(crate) trait Present<T> {
    /// Returns [`Error::Internal`] with the text `what` for `None`.
    fn present(self, what: &str) -> Result<T>;
}

impl<T> Present<T> for Option<T> {
    fn present(self, what: &str) -> Result<T> {
        self.ok_or_else(|| Error::Internal(what.to_owned()))
    }
}

/// Returns an error of this kind: `bail!(Image, "format", arguments)`.
macro_rules! bail {
    ($kind:ident, $($why:tt)+) => {
        return Err($crate::error::Error::$kind(format!($($why)+)))
    };
}

/// Returns an error of this kind unless a condition holds: `ensure!(Image, condition, "format", arguments)`.
macro_rules! ensure {
    ($kind:ident, $holds:expr, $($why:tt)+) => {
        if !$holds {
            $crate::error::bail!($kind, $($why)+);
        }
    };
}

pub(crate) use {bail, ensure};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_follow_on_the_same_line() {
        let missing: Result<()> = Err(io::Error::from_raw_os_error(2)).context("cannot open x");
        let error = missing.context("the disk d").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the disk d: cannot open x: No such file or directory (os error 2)"
        );
        assert!(std::error::Error::source(&error).is_none());
    }
}
