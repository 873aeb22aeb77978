//! A ring of records between two: one writes, and waits for the other, who reads.
//!
//! ```text
//!      0  position of the writer         written by the writer only
//!     64  whether it sleeps, who it is
//!    128  position of the reader         written by the reader only
//!    192  whether it sleeps, who it is
//!    256  data: a power of two bytes
//! ```
//!
//! Who sleeps says so in its own line, with its number, rather than in a bitmap that both would write. The value is
//! another one at each sleep, so that the other side wakes it once and not at each record until it is awake.
//!
//! Positions count bytes and never go back. A record is a word with its length, then its bytes, then up to 7 bytes of
//! padding; it never wraps: where it does not fit before the end, a word there says so and it lies at the beginning. So
//! a record can be written and read in place, and has at most half of the data, less 8 bytes.
//!
//! Who sends does one store to a line of its own, and looks at the reader's only when the free bytes that it knows of
//! are used up; the other way round the same. After that comes one full fence, and a load of a line that changes only
//! when the other side falls asleep. Who has many small records spares the fence: [`Grant::commit_quietly`], and
//! [`Writer::notify`] after the last.
//!
//! Who finds a ring full, or one of short records empty, then waits for more than one record as long as the other side
//! is fast: to go on with each that the other has read or written costs both of them more than the record. Where records
//! come one by one, a reader tries that, for 64 hints to the processor, at one wait of 64, then ever more seldom, down to
//! one of 4096.
//!
//! A hostile side causes wrong data, [`Error::Corrupt`] or a wait until the deadline, and nothing else. Each side keeps
//! its own position where the other cannot write, reads a foreign word once, checks it, and uses what it checked. Ring
//! size, and so the mask, is not in the ring at all.

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
use crate::park::{passed, Park};

/// Kinds of a record's word, in its high half; the length is in the low half.
const RECORD: u64 = 1;
/// What follows lies at the beginning.
const SKIP: u64 = 2;

/// Bytes of a record's word.
const WORD: u64 = 8;

/// Bytes before a ring's data.
pub const HEADER: usize = size_of::<Control>();

/// Fewest bytes of a ring's data.
pub const MIN_BYTES: usize = 64;

/// Most bytes of a record in a ring with `bytes` bytes of data.
pub const fn limit(bytes: usize) -> usize {
    let half = bytes / 2 - WORD as usize;
    if half > u32::MAX as usize {
        u32::MAX as usize
    } else {
        half
    }
}

/// Bytes that a record of `len` bytes takes.
fn room(len: usize) -> u64 {
    WORD + (len as u64).next_multiple_of(WORD)
}

/// Records of fewer bytes are short: as a fence ends each, what a line costs that is not here yet is not hidden behind
/// the next one's.
const SHORT: usize = 512;

/// Hints to the processor between two looks at the other side,
const HINTS: u32 = 64;
/// and looks, at most.
const LOOKS: u32 = 64;

/// Looks at what the other side does until there is `enough` for this one, as long as it does something between two
/// looks, and not for longer than a wait looks before it sleeps. Whether it did.
fn follow<G: Park + ?Sized>(
    group: &G,
    deadline: Option<u64>,
    enough: u64,
    mut look: impl FnMut() -> Result<u64, Error>,
) -> Result<bool, Error> {
    let first = look()?;
    let mut last = first;
    for _ in 0..(group.spins() / HINTS).min(LOOKS) {
        if last >= enough || passed(group, deadline) {
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

/// A ring as one side sees it: both positions as they were last checked.
#[derive(Debug)]
struct Window<D> {
    data: D,
    capacity: u64,
    /// Where the reader is.
    tail: u64,
    /// Where the writer is; `head - tail` is never more than `capacity`.
    head: u64,
    /// Somebody did not keep the protocol.
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
        let in_step = head % WORD == 0 && tail % WORD == 0 && window.used() <= window.capacity;
        in_step.then_some(window).ok_or(Error::Corrupt)
    }

    fn used(&self) -> u64 {
        self.head.wrapping_sub(self.tail)
    }

    fn free(&self) -> u64 {
        self.capacity - self.used()
    }

    /// Offset of a position, and bytes from there to the end.
    fn place(&self, position: u64) -> (usize, u64) {
        let offset = position & (self.capacity - 1);
        (offset as usize, self.capacity - offset)
    }

    fn refuse<T>(&mut self) -> Result<T, Error> {
        self.corrupt = true;
        Err(Error::Corrupt)
    }
}
