//! A ring of slots with one writer, which does not wait for its readers.
//!
//! Record `n` lies in slot `n % records` and has the number `n`. After each record the writer increases the shared
//! `next`. If a reader finds a number in a slot that it does not expect, it was too slow and that record is lost.

use crate::memory::{Load, Store};
use crate::slot::Slot;

/// Number of a record that is being written. No ring lives long enough for a record to have it.
const WRITING: u64 = u64::MAX;

/// Position of a ring in its memory, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    next: usize,
    first: usize,
    words: usize,
    records: u64,
}

impl Shape {
    /// `next`: index of the word with the number of the next record. `first`: index of the first record's first word.
    /// `words`: words of a record, including its number, which is the first. `records`: number of records. `None` if
    /// that number is not a power of two or if the records do not fit in `memory`.
    pub fn new(
        memory: &impl Load,
        next: usize,
        first: usize,
        words: usize,
        records: u64,
    ) -> Option<Self> {
        let room = memory.words().checked_sub(first)? as u64;
        let fits = words > 0 && records.checked_mul(words as u64)? <= room;
        (fits && records.is_power_of_two() && next < memory.words()).then_some(Self {
            next,
            first,
            words,
            records,
        })
    }

    /// Number of records that the ring holds.
    pub fn records(&self) -> u64 {
        self.records
    }

    fn slot(&self, number: u64) -> Slot {
        let first = self.first + (number & (self.records - 1)) as usize * self.words;
        Slot { first, words: self.words, number: first }
    }
}

/// The ring's writer.
#[derive(Debug)]
pub struct Writer<M> {
    memory: M,
    shape: Shape,
    next: u64,
}

impl<M: Store> Writer<M> {
    /// Continues at the ring's `next`. There must be no other writer.
    pub fn new(memory: M, shape: Shape) -> Self {
        let next = memory.load(shape.next);
        Self { memory, shape, next }
    }

    /// Writes a record. The first word of `body` is the place of the number and is ignored.
    pub fn push(&mut self, body: &[u64]) {
        self.shape.slot(self.next).write(&self.memory, body, WRITING, self.next);
        self.next = self.next.wrapping_add(1);
        self.memory.release();
        self.memory.store(self.shape.next, self.next);
    }

    /// Number of the next record, from the writer's private copy, not from the ring.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The ring's memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }
}

/// Result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// The reader has seen all records.
    Empty,
    /// The next record.
    Record(T),
    /// This many records, at least one, were overwritten before they were read. Later records may be readable.
    Lost(u64),
    /// The number of the next record is lower than that of a record that was read, so the writer is not honest. The
    /// reader returns this until the number is back where it was.
    Backwards,
}

/// A reader of the ring. It never writes to the memory.
#[derive(Debug)]
pub struct Reader<M> {
    memory: M,
    shape: Shape,
    cursor: u64,
}

impl<M: Load> Reader<M> {
    /// A reader that starts at record number `cursor`.
    pub fn new(memory: M, shape: Shape, cursor: u64) -> Self {
        Self { memory, shape, cursor }
    }

    /// Number of the record to read next.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Number of the record to be written next, according to the ring. Records below it can be read.
    pub fn end(&self) -> u64 {
        let end = self.memory.load(self.shape.next);
        self.memory.acquire();
        end
    }

    /// Reads the next record below `end` into `body`. Loads each slot of the ring at most once.
    pub fn read(&mut self, end: u64, body: &mut [u64]) -> Outcome<u64> {
        let Some(waiting) = end.checked_sub(self.cursor) else {
            return Outcome::Backwards;
        };
        let mut lost = waiting.saturating_sub(self.shape.records);
        self.cursor += lost;
        if lost > 0 {
            return Outcome::Lost(lost);
        }
        while self.cursor < end {
            let wanted = self.cursor;
            let read = self.shape.slot(wanted).read(&self.memory, body, |number| number == wanted);
            if read.is_some() && lost > 0 {
                return Outcome::Lost(lost); // the next call reads this record again
            }
            self.cursor += 1;
            match read {
                Some(number) => return Outcome::Record(number),
                None => lost += 1,
            }
        }
        if lost > 0 {
            Outcome::Lost(lost)
        } else {
            Outcome::Empty
        }
    }

    /// The ring's memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The ring's shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }
}
