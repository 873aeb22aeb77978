//! The event ring: what the cokernel and the layer report.
//!
//! **Sides.** One writer: the layer, for itself and for the cokernel; in mode vmm the hypervisor. Any number of
//! readers, such as the `kyozon` command. The crate `kyozon-channel` implements both sides.
//!
//! **Version.** [`EVENTS_VERSION`], in [`EventRing::version`]; a reader checks it before it reads anything else.
//!
//! **When to bump it.** Add 1 when a size, an offset, a constant's value or the meaning of a field changes. New wording
//! or a renamed item does not change the version.
//!
//! Records have one size, and the writer does not wait for readers. A reader that is too slow loses the oldest records;
//! the gap in [`EventRecord::sequence`] shows how many. A reader never writes to the ring, so Linux can have it mapped
//! read-only.

use crate::assert_size;
use core::mem::offset_of;

/// Version of this interface.
pub const EVENTS_VERSION: u32 = 1;

/// Bytes of text in one record.
pub const EVENT_TEXT_BYTES: usize = 216;

/// [`EventRecord::kind`]: a message for the operator.
pub const EVENT_NOTE: u32 = 1;
/// [`EventRecord::kind`]: the monitor found tampering.
pub const EVENT_FINDING: u32 = 2;
/// [`EventRecord::kind`]: the monitor repaired tampering.
pub const EVENT_REPAIR: u32 = 3;
/// [`EventRecord::kind`]: the cokernel or one of its tasks was stopped.
pub const EVENT_FAULT: u32 = 4;
/// [`EventRecord::kind`]: nested paging stopped an attempt of Linux against the cokernel.
pub const EVENT_WALL: u32 = 5;

/// Number of entries in [`EventRing::checks`].
pub const MAX_CHECKS: usize = 8;
/// Offset of the first record from the start of the ring's memory.
pub const RECORDS_OFFSET: u64 = 4096;

/// What a check has done so far.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckStatus {
    /// Name, UTF-8, padded with zeros; empty if the check does not exist.
    pub name: [u8; 32],
    /// Odd while the writer changes the other fields: a reader reads again.
    pub sequence: u64,
    /// Number of complete passes.
    pub passes: u64,
    /// Number of findings that were reported.
    pub findings: u64,
    /// Number of findings that were repaired.
    pub repairs: u64,
    /// Number of times that the check was postponed because Linux was changing what it reads.
    pub retries: u64,
    /// CPU time of the last complete pass, in time-stamp counter ticks.
    pub pass_tsc: u64,
    /// CPU time of all passes, in time-stamp counter ticks.
    pub total_tsc: u64,
    /// Time-stamp counter at the end of the last complete pass.
    pub last_tsc: u64,
    /// Number of items (tasks, pages) that the last complete pass read.
    pub items: u64,
    /// Zero.
    pub reserved: [u64; 3],
}
assert_size!(CheckStatus, 128);

/// Words of a [`CheckStatus`].
const STATUS_WORDS: usize = size_of::<CheckStatus>() / 8;

impl CheckStatus {
    /// The status of a check that has done nothing so far. A name of more than 32 bytes is cut off.
    pub fn named(name: &str) -> Self {
        let mut status = Self::default();
        let count = name.len().min(status.name.len());
        status.name[..count].copy_from_slice(&name.as_bytes()[..count]);
        status
    }

    /// The structure as words in memory order, for memory that is accessed by word.
    pub fn to_words(&self) -> [u64; STATUS_WORDS] {
        let mut words = [0; STATUS_WORDS];
        for (word, bytes) in words.iter_mut().zip(self.name.chunks(8)) {
            *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        let s = self;
        words[4..].copy_from_slice(&[
            s.sequence,
            s.passes,
            s.findings,
            s.repairs,
            s.retries,
            s.pass_tsc,
            s.total_tsc,
            s.last_tsc,
            s.items,
            0,
            0,
            0,
        ]);
        words
    }

    /// Undoes [`CheckStatus::to_words`]. Reserved words become zero.
    pub fn from_words(words: &[u64; STATUS_WORDS]) -> Self {
        let mut name = [0; 32];
        for (bytes, word) in name.chunks_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let [_, _, _, _, sequence, passes, findings, repairs, retries, pass_tsc, total_tsc, last_tsc, items, ..] =
            *words;
        Self {
            name,
            sequence,
            passes,
            findings,
            repairs,
            retries,
            pass_tsc,
            total_tsc,
            last_tsc,
            items,
            reserved: [0; 3],
        }
    }
}

// The order of the words.
const _: () = {
    assert!(offset_of!(CheckStatus, name) == 0 && offset_of!(CheckStatus, sequence) == 32);
    assert!(offset_of!(CheckStatus, passes) == 40 && offset_of!(CheckStatus, findings) == 48);
    assert!(offset_of!(CheckStatus, repairs) == 56 && offset_of!(CheckStatus, retries) == 64);
    assert!(offset_of!(CheckStatus, pass_tsc) == 72 && offset_of!(CheckStatus, total_tsc) == 80);
    assert!(offset_of!(CheckStatus, last_tsc) == 88 && offset_of!(CheckStatus, items) == 96);
};

/// Start of the ring's memory. The records follow at byte [`RECORDS_OFFSET`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRing {
    /// [`EVENTS_VERSION`]; 0 once the cokernel is unloaded, because a reader's mapping outlives the cokernel.
    pub version: u32,
    /// Number of records in the ring, a power of two.
    pub records: u32,
    /// Sequence number of the next record to be written: record `n` lies in slot `n % records`.
    pub next: u64,
    /// Time-stamp counter ticks per millisecond.
    pub tsc_khz: u64,
    /// Time-stamp counter when the ring was created, just before the cokernel's first tick.
    pub loaded_tsc: u64,
    /// Zero.
    pub reserved: [u64; 4],
    /// Status of the monitor's checks.
    pub checks: [CheckStatus; MAX_CHECKS],
}
assert_size!(EventRing, 64 + 128 * MAX_CHECKS);

/// One event. Its text is one line of UTF-8.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// Number of this record, from 0. It is written last: a reader that finds a number it does not expect reads again.
    pub sequence: u64,
    /// Time-stamp counter when the record was written.
    pub tsc: u64,
    /// Number of the tick during which it was written.
    pub tick: u64,
    /// `EVENT_*`.
    pub kind: u32,
    /// A number whose meaning depends on `kind`: the index of the check, the vector.
    pub code: u32,
    /// Number of valid bytes in `text`.
    pub text_bytes: u32,
    /// 1 if the text continues in the next record, else 0.
    pub continues: u32,
    /// The line, without a line feed.
    pub text: [u8; EVENT_TEXT_BYTES],
}
assert_size!(EventRecord, 256);
