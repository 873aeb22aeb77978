//! Errors of hypercalls.

use core::fmt;
use kyozon_abi::unikernel::*;

/// Why the tender refuses a hypercall: one of `ERROR_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no such hypercall.
    Call,
    /// An address is outside the guest, not aligned, or without the necessary right.
    Address,
    /// A number is out of its range.
    Argument,
    /// There is no region or peer of this name or number.
    Name,
    /// There is one already, or the address range is taken.
    Exists,
    /// The right was not granted, or the caller is not the owner.
    Right,
    /// There is no room.
    Full,
    /// The deadline has passed.
    Timeout,
    /// This back end cannot do this.
    Unsupported,
    /// An error that this crate does not know.
    Other(i64),
}

/// The result of a hypercall.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// Converts the tender's answer: 0 or more is a value, the rest are errors.
    pub(crate) fn check(answer: i64) -> Result<u64> {
        Err(match answer {
            0.. => return Ok(answer as u64),
            ERROR_CALL => Self::Call,
            ERROR_ADDRESS => Self::Address,
            ERROR_ARGUMENT => Self::Argument,
            ERROR_NAME => Self::Name,
            ERROR_EXISTS => Self::Exists,
            ERROR_RIGHT => Self::Right,
            ERROR_FULL => Self::Full,
            ERROR_TIMEOUT => Self::Timeout,
            ERROR_UNSUPPORTED => Self::Unsupported,
            other => Self::Other(other),
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Call => "no such call",
            Self::Address => "bad address",
            Self::Argument => "number out of range",
            Self::Name => "no such region or peer",
            Self::Exists => "exists already",
            Self::Right => "no right to do this",
            Self::Full => "no room",
            Self::Timeout => "the deadline has passed",
            Self::Unsupported => "not supported by this back end",
            Self::Other(number) => return write!(f, "error {number}"),
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn every_error_has_a_message_of_its_own() {
        assert_eq!(Error::check(7), Ok(7));
        let errors: std::vec::Vec<Error> =
            (ERROR_UNSUPPORTED..=ERROR_CALL).map(|e| Error::check(e).unwrap_err()).collect();
        for (i, e) in errors.iter().enumerate() {
            assert!(!matches!(e, Error::Other(_)));
            assert!(errors[..i].iter().all(|o| o != e && o.to_string() != e.to_string()));
        }
        assert_eq!(Error::check(-99).unwrap_err().to_string(), "error -99");
    }
}
