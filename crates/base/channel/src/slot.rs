//! A sequence lock: one record that may be read while it is written.
//!
//! The writer first changes the record's number to one that no reader accepts, then writes the body, then sets the new
//! number. A reader loads the number, the body, and the number again; it accepts the body if both numbers are the same.
//!
//! This suffices because of two fences. If a reader sees one word of a later body, the writer's first release fence and
//! the reader's second acquire fence order the writer's change of the number before the reader's second load of it. So
//! the second load sees a different number. The other fence on each side ensures that a reader which loads the new
//! number reads the new body (H.-J. Boehm, Can Seqlocks Get Along With Programming Language Memory Models?, MSPC 2012).

use crate::memory::{Load, Store};

/// Position of a record in its memory, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Index of its first word.
    pub first: usize,
    /// Number of its words, including the word with its number.
    pub words: usize,
    /// Index of the word that holds its number.
    pub number: usize,
}

impl Slot {
    /// Writes `body`, except the word for the number. `writing` must be a number that no reader accepts, `written` one
    /// that the record has not had before.
    pub fn write<M: Store>(&self, memory: &M, body: &[u64], writing: u64, written: u64) {
        memory.store(self.number, writing);
        memory.release();
        for (index, word) in (self.first..self.first + self.words).zip(body) {
            if index != self.number {
                memory.store(index, *word);
            }
        }
        memory.release();
        memory.store(self.number, written);
    }

    /// Reads `body` once and returns its number. Returns `None` if `wanted` rejects the number or if the record was
    /// written meanwhile; the contents of `body` are then meaningless.
    pub fn read<M: Load>(
        &self,
        memory: &M,
        body: &mut [u64],
        wanted: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let before = memory.load(self.number);
        memory.acquire();
        if !wanted(before) {
            return None;
        }
        for (index, word) in (self.first..self.first + self.words).zip(body) {
            *word = if index == self.number { before } else { memory.load(index) };
        }
        memory.acquire();
        (memory.load(self.number) == before).then_some(before)
    }
}
