//! The event ring: whoever runs beside Linux writes, whoever wants to know reads.
//!
//! One writer, readers that it does not wait for, records of one size. A reader that is too slow loses the oldest records
//! and learns how many from the gap in [`EventRecord::sequence`]. A reader never writes to the ring, so that Linux can be
//! given it read-only. The crate `kyozon-channel` is both sides of it.

use crate::assert_size;
use core::mem::offset_of;

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
/// [`EventRecord::kind`]: an attempt of Linux against the cokernel was stopped.
pub const EVENT_WALL: u32 = 5;

/// Most checks that [`EventRing::checks`] tells of.
pub const MAX_CHECKS: usize = 8;
/// Offset of the first record from the start of the ring's memory.
pub const RECORDS_OFFSET: u64 = 4096;

/// What a check has done so far.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckStatus {
    /// Its name, UTF-8, padded with zeros; empty where there is no such check.
    pub name: [u8; 32],
    /// Odd while the rest is written: a reader reads again.
    pub sequence: u64,
    /// Complete passes.
    pub passes: u64,
    /// Findings that were reported.
    pub findings: u64,
    /// Findings that were undone.
    pub repairs: u64,
    /// Times that a look was put off because Linux was changing what was looked at.
    pub retries: u64,
    /// Time-stamp counter ticks that the last complete pass took of the CPU.
    pub pass_tsc: u64,
    /// Time-stamp counter ticks that all of it took.
    pub total_tsc: u64,
    /// Time-stamp counter at the end of the last complete pass.
    pub last_tsc: u64,
    /// Things (tasks, pages) that the last complete pass looked at.
    pub items: u64,
    /// Must be zero.
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

/// Start of the ring's memory; the records follow at byte [`RECORDS_OFFSET`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRing {
    /// [`EVENTS_VERSION`]; 0 once the cokernel is unloaded: a reader's mapping lives longer.
    pub version: u32,
    /// Records in the ring, a power of two.
    pub records: u32,
    /// Sequence number of the next record to be written: record `n` lies in slot `n % records`.
    pub next: u64,
    /// Time-stamp counter ticks in a millisecond.
    pub tsc_khz: u64,
    /// Time-stamp counter when the ring was made, just before the cokernel's first tick.
    pub loaded_tsc: u64,
    /// Must be zero.
    pub reserved: [u64; 4],
    /// One for each check of the monitor.
    pub checks: [CheckStatus; MAX_CHECKS],
}
assert_size!(EventRing, 64 + 128 * MAX_CHECKS);

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
