//! Slots in a circle: one writer, and readers that it does not wait for.
//!
//! Record `n` lies in slot `n % records` and has the number `n`. The writer raises the shared `next` after each record.
//! A reader that finds another number in a slot than it expects was too slow: that record is gone.

use crate::memory::{Load, Store};
use crate::slot::Slot;

/// Number of a record that is being written. Nobody lives to see the record that has it.
const WRITING: u64 = u64::MAX;

/// Where a ring lies in its memory, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    next: usize,
    first: usize,
    words: usize,
    records: u64,
}

impl Shape {
    /// `next`: the word with the number of the next record. `first`: the first word of the records. `words`: of each,
    /// its number the first. `records`: how many. `None` where they are not a power of two or do not fit `memory`.
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

    /// How many records the ring holds.
    pub fn records(&self) -> u64 {
        self.records
    }

    fn slot(&self, number: u64) -> Slot {
        let first = self.first + (number & (self.records - 1)) as usize * self.words;
        Slot { first, words: self.words, number: first }
    }
}

/// The one that writes.
#[derive(Debug)]
pub struct Writer<M> {
    memory: M,
    shape: Shape,
    next: u64,
}

impl<M: Store> Writer<M> {
    /// Goes on where the ring's `next` says. There must be no other writer.
    pub fn new(memory: M, shape: Shape) -> Self {
        let next = memory.load(shape.next);
        Self { memory, shape, next }
    }

    /// Writes a record; the first word of `body` is left out, it is the number.
    pub fn push(&mut self, body: &[u64]) {
        self.shape.slot(self.next).write(&self.memory, body, WRITING, self.next);
        self.next = self.next.wrapping_add(1);
        self.memory.release();
        self.memory.store(self.shape.next, self.next);
    }

    /// Number of the record that comes next: the writer's own knowledge, not what stands in the ring.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }
}

/// What a reader found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// Nothing: it has seen all.
    Empty,
    /// The record that comes next.
    Record(T),
    /// So many records were overwritten before they were read, at least one. What follows them may be there.
    Lost(u64),
    /// The number of the next record is lower than that of one that was read: whoever writes is not honest. It stays
    /// so until the number is back where it was.
    Backwards,
}

/// One that reads. It never writes.
#[derive(Debug)]
pub struct Reader<M> {
    memory: M,
    shape: Shape,
    cursor: u64,
}

impl<M: Load> Reader<M> {
    /// Reads from record number `cursor` on.
    pub fn new(memory: M, shape: Shape, cursor: u64) -> Self {
        Self { memory, shape, cursor }
    }

    /// Number of the record that is read next.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Number of the record that is written next, as the ring says. Records below it can be read.
    pub fn end(&self) -> u64 {
        let end = self.memory.load(self.shape.next);
        self.memory.acquire();
        end
    }

    /// The next record below `end` to `body`. Looks at each slot of the ring at most once.
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
                return Outcome::Lost(lost); // it is read again when its turn comes
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

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The ring's shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }
}
