//! A request and its answer, in memory that two processes share.
//!
//! The client increments `request`; the server answers by storing the same number in `reply`. Every field is an atomic,
//! because the other side may write at any time. Whether an answer makes sense is for the client to check.

use super::futex;
use std::hint;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};
use std::time::{Duration, Instant};

/// Arguments of a system call.
pub const ARGUMENTS: usize = 6;
/// Rounds in which a side looks for the other's word before it sleeps: some 20 microseconds, more than most calls take.
const SPINS: usize = 500;
/// Maximum time between two looks at whether the other process lives.
const LOOK: Duration = Duration::from_millis(200);

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Boot the kernel. The first request, in the first slot.
    Boot,
    /// Make a task for the slot's thread.
    Attach,
    /// End that task.
    Detach,
    /// Perform a system call.
    Call,
    /// Copy the text of a disk's last error into the data.
    DiskError,
    /// Write everything back, halt, and exit.
    Halt,
}

const KINDS: [Kind; 6] =
    [Kind::Boot, Kind::Attach, Kind::Detach, Kind::Call, Kind::DiskError, Kind::Halt];

/// An argument: a number, or bytes of the slot's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// A number.
    Number(u64),
    /// Bytes at an offset, which the kernel reads, or of which it writes the number that it returns.
    Bytes(usize, usize),
    /// Bytes that the server fills with zeros first, because the client takes them all.
    Zeroed(usize, usize),
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub kind: Kind,
    /// The number of a system call, or of a disk.
    pub number: u64,
    /// The system call's arguments.
    pub arguments: [Argument; ARGUMENTS],
}

impl Request {
    /// A request without arguments.
    pub fn plain(kind: Kind, number: u64) -> Self {
        Self { kind, number, arguments: [Argument::Number(0); ARGUMENTS] }
    }
}

#[repr(C)]
struct Shared {
    tag: AtomicU32,
    bytes: AtomicU32,
    value: AtomicU64,
}

/// The shared words. All zeros are a slot without a request.
#[repr(C)]
pub struct Slot {
    request: AtomicU32,
    server_waits: AtomicU32,
    kind: AtomicU32,
    reserved: AtomicU32,
    number: AtomicU64,
    arguments: [Shared; ARGUMENTS],
    // The server's words, on another cache line.
    padding: [u64; 1],
    reply: AtomicU32,
    client_waits: AtomicU32,
    result: AtomicI64,
}

impl Slot {
    /// The client's side: submits a request. The result is its number.
    pub fn submit(&self, request: &Request) -> u32 {
        self.kind.store(request.kind as u32, Relaxed);
        self.number.store(request.number, Relaxed);
        for (shared, argument) in self.arguments.iter().zip(request.arguments) {
            let (tag, value, bytes) = match argument {
                Argument::Number(number) => (0, number, 0),
                Argument::Bytes(offset, bytes) => (1, offset as u64, bytes),
                Argument::Zeroed(offset, bytes) => (2, offset as u64, bytes),
            };
            shared.tag.store(tag, Relaxed);
            shared.value.store(value, Relaxed);
            shared.bytes.store(bytes as u32, Relaxed);
        }
        let number = self.request.fetch_add(1, SeqCst).wrapping_add(1);
        if self.server_waits.load(SeqCst) != 0 {
            futex::wake(&self.request);
        }
        number
    }

    /// The client's side: waits for the answer to request `number` while `alive`, and returns its result; none after
    /// `limit`, or when the server has ended.
    pub fn wait(&self, number: u32, limit: Duration, alive: impl Fn() -> bool) -> Option<i64> {
        let answered = || self.reply.load(Acquire) == number;
        let spun = (0..SPINS).any(|_| {
            hint::spin_loop();
            answered()
        });
        if spun {
            return Some(self.result.load(Relaxed));
        }
        let start = Instant::now();
        self.client_waits.store(1, SeqCst);
        let result = loop {
            let reply = self.reply.load(SeqCst);
            if reply == number {
                break Some(self.result.load(Relaxed));
            }
            let left = limit.saturating_sub(start.elapsed());
            if left.is_zero() || !alive() {
                break None;
            }
            futex::wait(&self.reply, reply, Some(left.min(LOOK)));
        };
        self.client_waits.store(0, Relaxed);
        result
    }

    /// The client's side: wakes a thread that waits for an answer, so that it looks whether the server lives.
    pub fn stir(&self) {
        futex::wake(&self.reply);
    }

    /// The server's side: waits for a request after number `last`. Returns its number, and the request unless it is
    /// invalid.
    pub fn next(&self, last: u32) -> (u32, Option<Request>) {
        let news = || self.request.load(Acquire) != last;
        let spun = (0..SPINS).any(|_| {
            hint::spin_loop();
            news()
        });
        if !spun {
            self.server_waits.store(1, SeqCst);
            while self.request.load(SeqCst) == last {
                futex::wait(&self.request, last, None);
            }
            self.server_waits.store(0, Relaxed);
        }
        (self.request.load(Acquire), self.read())
    }

    fn read(&self) -> Option<Request> {
        let kind = *KINDS.get(self.kind.load(Relaxed) as usize)?;
        let mut request = Request::plain(kind, self.number.load(Relaxed));
        for (argument, shared) in request.arguments.iter_mut().zip(&self.arguments) {
            let (value, bytes) = (shared.value.load(Relaxed), shared.bytes.load(Relaxed) as usize);
            *argument = match shared.tag.load(Relaxed) {
                0 => Argument::Number(value),
                1 => Argument::Bytes(usize::try_from(value).ok()?, bytes),
                _ => Argument::Zeroed(usize::try_from(value).ok()?, bytes),
            };
        }
        Some(request)
    }

    /// The server's side: answers request `number`.
    pub fn answer(&self, number: u32, result: i64) {
        self.result.store(result, Relaxed);
        self.reply.store(number, SeqCst);
        if self.client_waits.load(SeqCst) != 0 {
            futex::wake(&self.reply);
        }
    }
}
