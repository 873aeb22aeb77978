//! Errors of system calls.

use core::fmt;
use kyozon_abi::task::*;

/// The kernel's answer `E_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no such call.
    Call,
    /// There is no such handle, or it names another kind of object.
    Handle,
    /// The handle or the task lacks the right.
    Right,
    /// An address is not mapped for the task, not aligned, or read-only.
    Address,
    /// A number is out of range.
    Argument,
    /// No handle, object or thread is free.
    Full,
    /// The peer has ended.
    Gone,
    /// The peer does not accept the transfer.
    Refused,
    /// The call does not exist in this mode.
    Unavailable,
    /// No caller waits for a reply.
    NoCaller,
    /// An unknown error.
    Other(i64),
}

/// The result of a system call.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// Converts the kernel's answer: 0 or more, or an error.
    pub(crate) fn check(answer: i64) -> Result<u64> {
        Err(match answer {
            0.. => return Ok(answer as u64),
            E_CALL => Self::Call,
            E_HANDLE => Self::Handle,
            E_RIGHT => Self::Right,
            E_ADDRESS => Self::Address,
            E_ARGUMENT => Self::Argument,
            E_FULL => Self::Full,
            E_GONE => Self::Gone,
            E_REFUSED => Self::Refused,
            E_UNAVAILABLE => Self::Unavailable,
            E_NO_CALLER => Self::NoCaller,
            other => Self::Other(other),
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Call => "no such system call",
            Self::Handle => "no such handle",
            Self::Right => "missing right",
            Self::Address => "bad address",
            Self::Argument => "number out of range",
            Self::Full => "nothing free: handles, objects or threads",
            Self::Gone => "the peer has ended",
            Self::Refused => "the peer does not accept the transfer",
            Self::Unavailable => "not available in this mode",
            Self::NoCaller => "no caller waits for a reply",
            Self::Other(number) => return write!(f, "error {number}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_its_own_text() {
        assert_eq!(Error::check(7), Ok(7));
        let errors: Vec<Error> =
            (E_NO_CALLER..=E_CALL).map(|e| Error::check(e).unwrap_err()).collect();
        for (i, e) in errors.iter().enumerate() {
            assert!(!matches!(e, Error::Other(_)));
            assert!(errors[..i]
                .iter()
                .all(|other| other != e && other.to_string() != e.to_string()));
        }
        assert_eq!(Error::check(-99).unwrap_err().to_string(), "error -99");
    }
}
