//! Why something could not be done.

use core::fmt;

/// Why a lock, a barrier or a ring refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The deadline has passed.
    TimedOut,
    /// The caller holds the lock already, or its word says so.
    Deadlock,
    /// Somebody died whom the others waited for.
    Poisoned,
    /// The caller's number is not among those for whom this was made.
    NotAMember,
    /// The other side has closed the ring, and all that it sent was received.
    Closed,
    /// The other side of the ring is dead, and all that it sent was received.
    PeerDied,
    /// A peer did not keep the protocol. A ring between two stays unusable.
    Corrupt,
    /// A record of so many bytes never fits: at most as many as `limit` says.
    RecordTooLong {
        /// Most bytes of a record.
        limit: usize,
    },
    /// The next record has so many bytes, more than the buffer has. It stays in the ring.
    BufferTooShort {
        /// Bytes of the record.
        needed: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("the deadline has passed"),
            Self::Deadlock => f.write_str("the caller holds this lock already"),
            Self::Poisoned => f.write_str("a peer died whom the others waited for"),
            Self::NotAMember => {
                f.write_str("this was not made for a peer with the caller's number")
            }
            Self::Closed => f.write_str("the other side has closed the ring"),
            Self::PeerDied => f.write_str("the other side of the ring is dead"),
            Self::Corrupt => f.write_str("a peer did not keep the ring's protocol"),
            Self::RecordTooLong { limit } => {
                write!(f, "the record is too long: a record has at most {limit} bytes")
            }
            Self::BufferTooShort { needed } => {
                write!(f, "the buffer is too short: the record has {needed} bytes")
            }
        }
    }
}

impl core::error::Error for Error {}
