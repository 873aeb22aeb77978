//! One record that is read while it may be written: a sequence lock.
//!
//! The writer first changes the record's number to one that no reader wants, then the body, then the number to what it
//! shall be. A reader takes the number, the body, and the number again. Why that suffices: a reader that sees one word
//! of a later body has, through the writer's first release fence and its own acquire fence, also seen that the number
//! changed before (H.-J. Boehm, Can Seqlocks Get Along With Programming Language Memory Models?, MSPC 2012).

use crate::memory::{Load, Store};

/// Where a record lies, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its first word.
    pub first: usize,
    /// Its words, the number among them.
    pub words: usize,
    /// The word of its number.
    pub number: usize,
}

impl Slot {
    /// Writes `body`, its number left out. `writing` must be a number that no reader takes, `written` one that was not
    /// there before.
    pub fn write<M: Store>(&self, memory: &M, body: &[u64], writing: u64, written: u64) {
        memory.store(self.number, writing);
        memory.release();
        for (at, word) in (self.first..self.first + self.words).zip(body) {
            if at != self.number {
                memory.store(at, *word);
            }
        }
        memory.release();
        memory.store(self.number, written);
    }

    /// Reads `body` once; returns its number. `None` where `wanted` does not take the number, or the record was being
    /// written meanwhile; `body` then holds nothing of use.
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
        for (at, word) in (self.first..self.first + self.words).zip(body) {
            *word = if at == self.number { before } else { memory.load(at) };
        }
        memory.acquire();
        (memory.load(self.number) == before).then_some(before)
    }
}
