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
pub const EVENTS_VERSION: u32 = 4;

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
/// [`EventRecord::kind`]: the monitor restarts Linux, or says why it does not.
pub const EVENT_RESTART: u32 = 6;

/// Number of entries in [`EventRing::checks`]: as many as fit before the records.
pub const MAX_CHECKS: usize = 62;
/// Offset of the first record from the start of the ring's memory.
pub const RECORDS_OFFSET: u64 = 16384;

/// Words of a status: of a [`CheckStatus`], and of the [`MonitorStatus`].
pub const STATUS_WORDS: usize = 32;
/// A status as words in memory order: the layer and the microkernel pass it on without a look at its meaning.
pub type StatusWords = [u64; STATUS_WORDS];
/// Index of the [`MonitorStatus`] among the statuses; the checks come before it.
pub const MONITOR_INDEX: usize = MAX_CHECKS;

/// [`CheckStatus::state`]: the check has published nothing about its state.
pub const CHECK_UNKNOWN: u64 = 0;
/// [`CheckStatus::state`]: the check still learns what it will compare with. It reports little, and repairs nothing.
pub const CHECK_LEARNING: u64 = 1;
/// [`CheckStatus::state`]: the check reports every change of what it watches.
pub const CHECK_WATCHING: u64 = 2;

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
    /// `CHECK_*`.
    pub state: u64,
    /// Time-stamp counter ticks from the begin to the end of the last complete pass, with the time of all other code.
    pub wall_tsc: u64,
    /// Bytes of an item; 0 if an item is not memory.
    pub item_bytes: u64,
    /// Number of findings that are open: reported, and neither repaired nor gone.
    pub open: u64,
    /// Number of reported findings that the table of open findings had no room for.
    pub unlisted: u64,
    /// Number of items that the last complete pass had to leave out.
    pub unjudged: u64,
    /// Number of times that a pass began again because Linux had changed what it walked.
    pub restarts: u64,
    /// Number of suspects that were dropped for want of room, or because they could not be resolved.
    pub dropped: u64,
    /// Percentage of the first pass that is done; 100 once it is complete.
    pub learned: u64,
    /// Zero.
    pub reserved: [u64; 10],
}
assert_size!(CheckStatus, 8 * STATUS_WORDS);

impl CheckStatus {
    /// The status of a check that has done nothing so far. A name of more than 32 bytes is cut off.
    pub fn named(name: &str) -> Self {
        let mut status = Self::default();
        let count = name.len().min(status.name.len());
        status.name[..count].copy_from_slice(&name.as_bytes()[..count]);
        status
    }

    /// The structure as words, for memory that is accessed by word.
    pub fn to_words(&self) -> StatusWords {
        let mut words = [0; STATUS_WORDS];
        put_text(&mut words[..4], &self.name);
        let s = self;
        words[4..22].copy_from_slice(&[
            s.sequence,
            s.passes,
            s.findings,
            s.repairs,
            s.retries,
            s.pass_tsc,
            s.total_tsc,
            s.last_tsc,
            s.items,
            s.state,
            s.wall_tsc,
            s.item_bytes,
            s.open,
            s.unlisted,
            s.unjudged,
            s.restarts,
            s.dropped,
            s.learned,
        ]);
        words
    }

    /// Undoes [`CheckStatus::to_words`]. Reserved words become zero.
    pub fn from_words(words: &StatusWords) -> Self {
        let mut name = [0; 32];
        get_text(&words[..4], &mut name);
        Self {
            name,
            sequence: words[4],
            passes: words[5],
            findings: words[6],
            repairs: words[7],
            retries: words[8],
            pass_tsc: words[9],
            total_tsc: words[10],
            last_tsc: words[11],
            items: words[12],
            state: words[13],
            wall_tsc: words[14],
            item_bytes: words[15],
            open: words[16],
            unlisted: words[17],
            unjudged: words[18],
            restarts: words[19],
            dropped: words[20],
            learned: words[21],
            reserved: [0; 10],
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
    assert!(offset_of!(CheckStatus, state) == 104 && offset_of!(CheckStatus, wall_tsc) == 112);
    assert!(offset_of!(CheckStatus, item_bytes) == 120 && offset_of!(CheckStatus, open) == 128);
    assert!(offset_of!(CheckStatus, unlisted) == 136 && offset_of!(CheckStatus, unjudged) == 144);
    assert!(offset_of!(CheckStatus, restarts) == 152 && offset_of!(CheckStatus, dropped) == 160);
    assert!(offset_of!(CheckStatus, learned) == 168);
};

/// [`MonitorStatus::state`]: no task has said that it watches.
pub const MONITOR_NONE: u64 = 0;
/// [`MonitorStatus::state`]: the monitor reads its profile; its checks have not begun.
pub const MONITOR_STARTING: u64 = 1;
/// [`MonitorStatus::state`]: the monitor runs its checks.
pub const MONITOR_RUNNING: u64 = 2;
/// [`MonitorStatus::state`]: the monitor has ended; [`MonitorStatus::reason`] says why.
pub const MONITOR_ENDED: u64 = 3;

/// Bytes of [`MonitorStatus::reason`].
pub const REASON_BYTES: usize = 128;

/// The monitor as a whole. The monitor writes it; when the monitor ends, the microkernel does.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonitorStatus {
    /// `MONITOR_*`.
    pub state: u64,
    /// Time-stamp counter when the monitor last wrote this structure: its heartbeat.
    pub beat_tsc: u64,
    /// Time-stamp counter ticks after the heartbeat from which on the monitor counts as stopped; 0 for never.
    pub patience_tsc: u64,
    /// Number of times that the microkernel has started the monitor again.
    pub restarts: u64,
    /// Odd while the writer changes the other fields: a reader reads again.
    pub sequence: u64,
    /// Number of slices that the checks used up to their end.
    pub full_slices: u64,
    /// Number of slices.
    pub slices: u64,
    /// Length of a slice now, in time-stamp counter ticks.
    pub slice_tsc: u64,
    /// Zero.
    pub reserved: [u64; 8],
    /// Why the monitor ended, UTF-8, padded with zeros.
    pub reason: [u8; REASON_BYTES],
}
assert_size!(MonitorStatus, 8 * STATUS_WORDS);

impl Default for MonitorStatus {
    fn default() -> Self {
        Self::from_words(&[0; STATUS_WORDS])
    }
}

impl MonitorStatus {
    /// The structure as words, for memory that is accessed by word.
    pub fn to_words(&self) -> StatusWords {
        let mut words = [0; STATUS_WORDS];
        words[..8].copy_from_slice(&[
            self.state,
            self.beat_tsc,
            self.patience_tsc,
            self.restarts,
            self.sequence,
            self.full_slices,
            self.slices,
            self.slice_tsc,
        ]);
        put_text(&mut words[16..], &self.reason);
        words
    }

    /// Undoes [`MonitorStatus::to_words`]. Reserved words become zero.
    pub fn from_words(words: &StatusWords) -> Self {
        let mut reason = [0; REASON_BYTES];
        get_text(&words[16..], &mut reason);
        Self {
            state: words[0],
            beat_tsc: words[1],
            patience_tsc: words[2],
            restarts: words[3],
            sequence: words[4],
            full_slices: words[5],
            slices: words[6],
            slice_tsc: words[7],
            reserved: [0; 8],
            reason,
        }
    }

    /// Sets [`MonitorStatus::reason`]. Text that does not fit is cut off.
    pub fn set_reason(&mut self, text: &[u8]) {
        self.reason = [0; REASON_BYTES];
        let count = text.len().min(REASON_BYTES);
        self.reason[..count].copy_from_slice(&text[..count]);
    }
}

// The order of the words. The sequence is where a check's status has it.
const _: () = {
    assert!(offset_of!(MonitorStatus, state) == 0 && offset_of!(MonitorStatus, beat_tsc) == 8);
    assert!(offset_of!(MonitorStatus, patience_tsc) == 16);
    assert!(offset_of!(MonitorStatus, restarts) == 24);
    assert!(offset_of!(MonitorStatus, sequence) == offset_of!(CheckStatus, sequence));
    assert!(offset_of!(MonitorStatus, full_slices) == 40);
    assert!(offset_of!(MonitorStatus, slices) == 48 && offset_of!(MonitorStatus, slice_tsc) == 56);
    assert!(offset_of!(MonitorStatus, reason) == 128);
};

fn put_text(words: &mut [u64], text: &[u8]) {
    for (word, bytes) in words.iter_mut().zip(text.chunks(8)) {
        *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
}

fn get_text(words: &[u64], text: &mut [u8]) {
    for (bytes, word) in text.chunks_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
}

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
    /// Status of the monitor: the status with index [`MONITOR_INDEX`].
    pub monitor: MonitorStatus,
}
assert_size!(EventRing, 64 + 8 * STATUS_WORDS * (MAX_CHECKS + 1));
const _: () = {
    let words = 8 * STATUS_WORDS;
    assert!(
        offset_of!(EventRing, monitor) == offset_of!(EventRing, checks) + MONITOR_INDEX * words
    );
    assert!(size_of::<EventRing>() as u64 <= RECORDS_OFFSET);
};

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
    /// A number whose meaning depends on `kind`: the vector of a fault. Of the monitor's lines: the index of the check
    /// in bits 0 to 7, and above them one more than the number of the finding's class, or 0.
    pub code: u32,
    /// Number of valid bytes in `text`.
    pub text_bytes: u32,
    /// 1 if the text continues in the next record, else 0.
    pub continues: u32,
    /// The line, without a line feed.
    pub text: [u8; EVENT_TEXT_BYTES],
}
assert_size!(EventRecord, 256);
