//! Errors of locks, barriers and rings.

use core::fmt;

/// Why an operation on a lock, a barrier or a ring failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The deadline has passed.
    TimedOut,
    /// The caller already holds the lock, according to the lock's word.
    Deadlock,
    /// A peer for which the others waited died.
    Poisoned,
    /// The structure has no place for a peer with the caller's number.
    NotAMember,
    /// The other side has closed the ring, and everything that it sent was received.
    Closed,
    /// The other side of the ring is dead, and everything that it sent was received.
    PeerDied,
    /// A peer broke the protocol. A ring between two peers stays unusable.
    Corrupt,
    /// The record never fits.
    RecordTooLong {
        /// Maximum bytes of a record.
        limit: usize,
    },
    /// The buffer is shorter than the next record, which stays in the ring.
    BufferTooShort {
        /// Bytes that the buffer needs.
        needed: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("the deadline has passed"),
            Self::Deadlock => f.write_str("the caller already holds this lock"),
            Self::Poisoned => f.write_str("a peer for which the others waited died"),
            Self::NotAMember => {
                f.write_str("the structure has no place for a peer with the caller's number")
            }
            Self::Closed => f.write_str("the other side has closed the ring"),
            Self::PeerDied => f.write_str("the other side of the ring is dead"),
            Self::Corrupt => f.write_str("a peer broke the ring's protocol"),
            Self::RecordTooLong { limit } => {
                write!(f, "the record is too long: the limit is {limit} bytes")
            }
            Self::BufferTooShort { needed } => {
                write!(f, "the buffer is too short: it needs {needed} bytes")
            }
        }
    }
}

impl core::error::Error for Error {}
