//! What the kernel refuses.

use core::fmt;
use kyozon_abi::task::*;

/// An answer `E_*` of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no such call.
    Call,
    /// There is no such handle, or it is of another kind.
    Handle,
    /// The handle or the task has not the right.
    Right,
    /// An address is not the task's, not aligned, or must not be written.
    Address,
    /// A number is out of its range.
    Argument,
    /// There is no room: handles, objects, threads.
    Full,
    /// The other side is gone.
    Gone,
    /// The other side does not take what should go with the message.
    Refused,
    /// Not in this mode.
    Unavailable,
    /// Nobody waits for a reply.
    Nobody,
    /// An error that this crate does not know.
    Other(i64),
}

/// What a system call gives.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// An answer of the kernel: 0 or more, or an error.
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
            E_NO_CALLER => Self::Nobody,
            other => Self::Other(other),
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Call => "no such system call",
            Self::Handle => "no such handle",
            Self::Right => "no right to do this",
            Self::Address => "bad address",
            Self::Argument => "number out of range",
            Self::Full => "no room",
            Self::Gone => "the other side is gone",
            Self::Refused => "the other side does not take it",
            Self::Unavailable => "not in this mode",
            Self::Nobody => "nobody waits for a reply",
            Self::Other(number) => return write!(f, "error {number}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
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
