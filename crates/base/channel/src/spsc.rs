//! A ring of records from one writer to one reader. The writer waits for the reader.
//!
//! ```text
//!      0  position of the writer               written by the writer only
//!     64  the writer's sleep word and identity
//!    128  position of the reader               written by the reader only
//!    192  the reader's sleep word and identity
//!    256  data: a power of two bytes
//! ```
//!
//! A side that sleeps announces it in a cache line of its own, with its number, rather than in a bitmap that both
//! sides would write to. The sleep word has another value at each sleep. So the other side wakes the sleeper once, not
//! at each record until the sleeper runs.
//!
//! Positions count bytes and never decrease. A record consists of a word with its length, its bytes, and up to 7 bytes
//! of padding. It never wraps: if it does not fit before the end of the data, a word there marks the skip, and the
//! record lies at the beginning. So a record can be written and read in place, and takes at most half of the data, less
//! 8 bytes.
//!
//! To send a record, the writer does one store to a line of its own; it loads the reader's position only when it has
//! used up the free bytes that it knows of. Receiving is the mirror image. Then follow one full fence and a load of a
//! line that changes only when the other side starts to sleep. A writer of many small records avoids the fence by
//! [`Grant::commit_quietly`], and calls [`Writer::notify`] after the last of them.
//!
//! A writer that finds the ring full, or a reader that finds a ring of short records empty, then waits for more than
//! one record as long as the other side is fast: to continue after each single record would cost both sides more than
//! the record itself. If records arrive one by one, this wait is a delay: the reader then tries it only at every 64th
//! wait, for 64 spin hints, and less and less often, down to every 4096th.
//!
//! A hostile side causes wrong data, [`Error::Corrupt`] or a wait until the deadline, and nothing else. Each side keeps
//! a copy of its own position in memory that the other side cannot write to. It reads a word of the other side once,
//! checks it, and uses the checked value. The size of the ring, and so the mask, is not in shared memory at all.

mod control;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use control::{Control, Side};
pub use reader::{Reader, View};
pub use writer::{Grant, Writer};

use crate::data::Data;
use crate::error::Error;
use crate::park::{has_passed, Park};

/// High half of a record's word: a record follows. The low half is its length in bytes.
const RECORD: u64 = 1;
/// High half of a record's word: the next record lies at the beginning of the data.
const SKIP: u64 = 2;

/// Bytes of a record's word.
const WORD: u64 = 8;

/// Bytes before a ring's data.
pub const HEADER: usize = size_of::<Control>();

/// Minimum bytes of a ring's data.
pub const MIN_BYTES: usize = 64;

/// Maximum bytes of a record in a ring with `bytes` bytes of data.
pub const fn limit(bytes: usize) -> usize {
    let half = bytes / 2 - WORD as usize;
    if half > u32::MAX as usize {
        u32::MAX as usize
    } else {
        half
    }
}

/// Bytes that a record of `len` bytes takes in the ring.
fn room(len: usize) -> u64 {
    WORD + (len as u64).next_multiple_of(WORD)
}

/// Records of fewer bytes are short. A fence ends each record, so the cost of a missing cache line is not hidden behind
/// the next record's.
const SHORT: usize = 512;

/// Spin hints between two loads of the other side's position.
const HINTS: u32 = 64;
/// Maximum number of these loads.
const LOOKS: u32 = 64;

/// Follows the other side's progress until `look` returns `enough`. Stops when the other side makes no progress between
/// two looks, at the deadline, or after as many spin hints as a wait spends before it sleeps. Returns whether there was
/// progress.
fn follow<G: Park + ?Sized>(
    group: &G,
    deadline: Option<u64>,
    enough: u64,
    mut look: impl FnMut() -> Result<u64, Error>,
) -> Result<bool, Error> {
    let first = look()?;
    let mut last = first;
    for _ in 0..(group.spins() / HINTS).min(LOOKS) {
        if last >= enough || has_passed(group, deadline) {
            break;
        }
        (0..HINTS).for_each(|_| group.spin_hint());
        let now = look()?;
        if now == last {
            break;
        }
        last = now;
    }
    Ok(last != first)
}

/// A ring as one side sees it, with private copies of both positions as last checked.
#[derive(Debug)]
struct Window<D> {
    data: D,
    capacity: u64,
    /// Position of the reader.
    tail: u64,
    /// Position of the writer; `head - tail` is never more than `capacity`.
    head: u64,
    /// A side broke the protocol.
    corrupt: bool,
}

impl<D: Data> Window<D> {
    fn new<W: crate::word::Word>(control: &Control<W>, data: D) -> Result<Self, Error> {
        use core::sync::atomic::Ordering::SeqCst;
        let bytes = data.bytes();
        if !bytes.is_power_of_two() || bytes < MIN_BYTES {
            return Err(Error::Corrupt);
        }
        let tail = control.reader.position.load(SeqCst);
        let head = control.writer.position.load(SeqCst);
        let window = Self { data, capacity: bytes as u64, tail, head, corrupt: false };
        let in_step = head.is_multiple_of(WORD)
            && tail.is_multiple_of(WORD)
            && window.used() <= window.capacity;
        in_step.then_some(window).ok_or(Error::Corrupt)
    }

    fn used(&self) -> u64 {
        self.head.wrapping_sub(self.tail)
    }

    fn free(&self) -> u64 {
        self.capacity - self.used()
    }

    /// Offset of a position in the data, and bytes from there to the end.
    fn place(&self, position: u64) -> (usize, u64) {
        let offset = position & (self.capacity - 1);
        (offset as usize, self.capacity - offset)
    }

    fn refuse<T>(&mut self) -> Result<T, Error> {
        self.corrupt = true;
        Err(Error::Corrupt)
    }
}
