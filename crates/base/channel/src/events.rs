//! The event ring of [`kyozon_abi::events`]: lines, and the status of checks.

use crate::memory::{Load, Store};
use crate::ring::{Outcome, Reader, Shape, Writer};
use crate::slot::Slot;
use core::fmt;
use core::mem::offset_of;
use kyozon_abi::events::{
    CheckStatus, EventRecord, EventRing, MonitorStatus, StatusWords, EVENTS_VERSION,
    EVENT_TEXT_BYTES, MAX_CHECKS, MONITOR_INDEX, RECORDS_OFFSET, STATUS_WORDS,
};

/// Words of a record, and of a record's text.
const RECORD: usize = size_of::<EventRecord>() / 8;
const TEXT: usize = EVENT_TEXT_BYTES / 8;
/// Maximum number of attempts to read a status that does not change meanwhile. A writer needs some hundred
/// instructions, once per pass.
const STATUS_ATTEMPTS: u32 = 64;

// Indices of the header's words. Version and number of records share the first word.
const NEXT: usize = offset_of!(EventRing, next) / 8;
const TSC_KHZ: usize = offset_of!(EventRing, tsc_khz) / 8;
const LOADED_TSC: usize = offset_of!(EventRing, loaded_tsc) / 8;
const CHECKS: usize = offset_of!(EventRing, checks) / 8;

// The words of the records that are written and read below.
const _: () = {
    assert!(offset_of!(EventRing, version) == 0 && offset_of!(EventRing, records) == 4);
    assert!(offset_of!(EventRecord, sequence) == 0 && offset_of!(EventRecord, tsc) == 8);
    assert!(offset_of!(EventRecord, tick) == 16 && offset_of!(EventRecord, kind) == 24);
    assert!(offset_of!(EventRecord, code) == 28 && offset_of!(EventRecord, text_bytes) == 32);
    assert!(offset_of!(EventRecord, continues) == 36 && offset_of!(EventRecord, text) == 40);
};

/// Why memory is not a usable event ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The version is not [`EVENTS_VERSION`]; it is 0 if the cokernel that wrote the ring was unloaded.
    Version(u32),
    /// The number of records is not a power of two, or they do not fit in the memory.
    Records(u32),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => {
                write!(f, "the event ring has version {version}, not {EVENTS_VERSION}")
            }
            Self::Records(records) => write!(f, "the event ring cannot have {records} records"),
        }
    }
}

impl core::error::Error for Unusable {}

fn version<M: Load>(memory: &M) -> u32 {
    memory.load(0) as u32
}

fn shape<M: Load>(memory: &M) -> Result<Shape, Unusable> {
    let first = memory.load(0);
    let (version, records) = (first as u32, (first >> 32) as u32);
    if version != EVENTS_VERSION {
        return Err(Unusable::Version(version));
    }
    Shape::new(memory, NEXT, RECORDS_OFFSET as usize / 8, RECORD, records.into())
        .ok_or(Unusable::Records(records))
}

/// The slot of the status with `index`. The monitor's follows those of the checks.
fn status_slot(index: usize) -> Slot {
    let first = CHECKS + index * STATUS_WORDS;
    Slot { first, words: STATUS_WORDS, number: first + offset_of!(CheckStatus, sequence) / 8 }
}

/// Returns the byte if it is printable ASCII, else `?`.
pub fn printable(byte: u8) -> u8 {
    if (b' '..0x7f).contains(&byte) {
        byte
    } else {
        b'?'
    }
}

/// The ring's writer.
#[derive(Debug)]
pub struct EventWriter<M> {
    ring: Writer<M>,
}

impl<M: Store> EventWriter<M> {
    /// A writer to a ring whose header is complete. There must be no other writer.
    ///
    /// # Errors
    /// [`Unusable`] if the header is not that of a ring in this memory.
    pub fn new(memory: M) -> Result<Self, Unusable> {
        let shape = shape(&memory)?;
        Ok(Self { ring: Writer::new(memory, shape) })
    }

    /// Writes one line, in as many records as it needs. Replaces bytes that are not printable ASCII by `?`.
    pub fn write(&mut self, kind: u32, code: u32, tsc: u64, tick: u64, line: &[u8]) {
        let mut rest = line;
        loop {
            let (now, later) = rest.split_at(rest.len().min(EVENT_TEXT_BYTES));
            let mut body = [0; RECORD];
            body[1] = tsc;
            body[2] = tick;
            body[3] = u64::from(code) << 32 | u64::from(kind);
            body[4] = u64::from(!later.is_empty()) << 32 | now.len() as u64;
            for (word, bytes) in body[RECORD - TEXT..].iter_mut().zip(now.chunks(8)) {
                *word = bytes.iter().rev().fold(0, |word, b| word << 8 | u64::from(printable(*b)));
            }
            self.ring.push(&body);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
    }

    /// Publishes the status with `index`, below or equal to [`MONITOR_INDEX`]; does nothing for a larger one. Ignores
    /// the sequence in `status`.
    pub fn publish(&mut self, index: usize, status: &StatusWords) {
        if index > MONITOR_INDEX {
            return;
        }
        let slot = status_slot(index);
        let memory = self.ring.memory();
        let writing = memory.load(slot.number) | 1;
        slot.write(memory, status, writing, writing.wrapping_add(1));
    }

    /// Number of the next record.
    pub fn next(&self) -> u64 {
        self.ring.next()
    }
}

/// A reader of the ring. It returns what a peer wrote: only `text_bytes` is checked to be in range, the text is not
/// checked.
#[derive(Debug)]
pub struct EventReader<M> {
    ring: Reader<M>,
}

impl<M: Load> EventReader<M> {
    /// A reader that starts at record 0; records that are already overwritten count as lost.
    ///
    /// # Errors
    /// [`Unusable`] if the header is not that of a ring in this memory.
    pub fn new(memory: M) -> Result<Self, Unusable> {
        Self::from(memory, 0)
    }

    /// A reader that starts at record number `cursor`.
    ///
    /// # Errors
    /// [`Unusable`] if the header is not that of a ring in this memory.
    pub fn from(memory: M, cursor: u64) -> Result<Self, Unusable> {
        let shape = shape(&memory)?;
        Ok(Self { ring: Reader::new(memory, shape, cursor) })
    }

    /// Number of the record to read next.
    pub fn cursor(&self) -> u64 {
        self.ring.cursor()
    }

    /// Number of the record to be written next, according to the ring.
    pub fn end(&self) -> u64 {
        self.ring.end()
    }

    /// Number of records that the ring holds.
    pub fn records(&self) -> u64 {
        self.ring.shape().records()
    }

    /// Reads the next record below number `end`.
    pub fn read(&mut self, end: u64) -> Outcome<EventRecord> {
        let mut body = [0; RECORD];
        match self.ring.read(end, &mut body) {
            Outcome::Record(_) => Outcome::Record(unpack_record(&body)),
            Outcome::Empty => Outcome::Empty,
            Outcome::Lost(records) => Outcome::Lost(records),
            Outcome::Backwards => Outcome::Backwards,
        }
    }

    /// Status of the check with index `check`. `None` if there is no such check, or if its status changed during every
    /// attempt to read it.
    pub fn check(&self, check: usize) -> Option<CheckStatus> {
        let words = (check < MAX_CHECKS).then(|| self.status(check))??;
        Some(CheckStatus::from_words(&words))
    }

    /// Status of the monitor. `None` if it changed during every attempt to read it.
    pub fn monitor(&self) -> Option<MonitorStatus> {
        Some(MonitorStatus::from_words(&self.status(MONITOR_INDEX)?))
    }

    fn status(&self, index: usize) -> Option<StatusWords> {
        let mut body = [0; STATUS_WORDS];
        let slot = status_slot(index);
        (0..STATUS_ATTEMPTS)
            .find_map(|_| slot.read(self.ring.memory(), &mut body, |number| number % 2 == 0))?;
        Some(body)
    }

    /// Time-stamp counter ticks per millisecond, according to the ring.
    pub fn tsc_khz(&self) -> u64 {
        self.ring.memory().load(TSC_KHZ)
    }

    /// Time-stamp counter when the cokernel was loaded, according to the ring.
    pub fn loaded_tsc(&self) -> u64 {
        self.ring.memory().load(LOADED_TSC)
    }

    /// Whether the cokernel that writes the ring is still loaded.
    pub fn is_open(&self) -> bool {
        version(self.ring.memory()) == EVENTS_VERSION
    }
}

fn unpack_record(body: &[u64; RECORD]) -> EventRecord {
    let (low, high) = (|word: u64| word as u32, |word: u64| (word >> 32) as u32);
    let mut text = [0; EVENT_TEXT_BYTES];
    for (bytes, word) in text.chunks_mut(8).zip(&body[RECORD - TEXT..]) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    EventRecord {
        sequence: body[0],
        tsc: body[1],
        tick: body[2],
        kind: low(body[3]),
        code: high(body[3]),
        text_bytes: low(body[4]).min(EVENT_TEXT_BYTES as u32),
        continues: high(body[4]),
        text,
    }
}

#[cfg(test)]
mod tests;
