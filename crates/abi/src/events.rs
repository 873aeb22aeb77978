//! The event ring: whoever runs beside Linux writes, whoever wants to know reads.
//!
//! One producer, one consumer, records of one size. A reader that is too slow loses the oldest records and
//! learns how many from the gap in [`EventRecord::sequence`]. The reader never writes to the ring, so that
//! Linux can be given it read-only.

use crate::assert_size;

/// Version of everything in this module.
pub const EVENTS_VERSION: u32 = 1;

/// Bytes of text in one record.
pub const EVENT_TEXT_BYTES: usize = 216;

/// [`EventRecord::kind`]: a line for people.
pub const EVENT_NOTE: u32 = 1;
/// [`EventRecord::kind`]: tampering was found.
pub const EVENT_FINDING: u32 = 2;
/// [`EventRecord::kind`]: tampering was undone.
pub const EVENT_REPAIR: u32 = 3;
/// [`EventRecord::kind`]: the cokernel or one of its tasks was stopped.
pub const EVENT_FAULT: u32 = 4;

/// Start of the ring's memory; the records follow at byte 64.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRing {
    /// [`EVENTS_VERSION`].
    pub version: u32,
    /// Records in the ring, a power of two.
    pub records: u32,
    /// Sequence number of the next record to be written: record `n` lies in slot `n % records`.
    pub next: u64,
    /// Must be zero.
    pub reserved: [u64; 6],
}
assert_size!(EventRing, 64);

/// One event. Its text is one line of UTF-8.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// Number of this record, from 0. Written last; a reader that sees another number than it expects reads again.
    pub sequence: u64,
    /// Time-stamp counter.
    pub tsc: u64,
    /// Number of the tick during which it was written.
    pub tick: u64,
    /// `EVENT_*`.
    pub kind: u32,
    /// Kind-specific number: which check, which vector.
    pub code: u32,
    /// Bytes used of `text`.
    pub text_bytes: u32,
    /// 1 where the text goes on in the next record, else 0.
    pub continues: u32,
    /// The line, without a line feed.
    pub text: [u8; EVENT_TEXT_BYTES],
}
assert_size!(EventRecord, 256);
