//! The state of a thread that other threads see, and the result that it hands over.

use crate::sleep;
use crate::vm::{gone, Vm};
use alloc::string::String;
use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use kyozon_channel::park::{Park, Peer};

/// Maximum bytes of a panic message that a joiner receives.
const MESSAGE_BYTES: usize = 512;

const RUNNING: u32 = 0;
const DONE: u32 = 1;
const PANICKED: u32 = 2;
const LEFT_EARLY: u32 = 3;

/// Why a thread has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It panicked, with this message, which names the source line.
    Panicked(String),
    /// It called [`leave`](super::leave).
    Left,
    /// It crashed, was ended by another thread, or called [`crate::exit`].
    Died,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(message) => write!(f, "the thread panicked: {message}"),
            Self::Left => f.write_str("the thread left"),
            Self::Died => f.write_str("the thread died"),
        }
    }
}

impl core::error::Error for Ended {}

/// How far a thread has come.
pub(super) struct Progress {
    state: AtomicU32,
    /// Peers that wait for the thread, one bit each.
    joiners: AtomicU64,
    /// Another thread has ended this one, and says that what it borrowed is in a valid state.
    ended: AtomicBool,
    /// The time-stamp counter at the thread's first instruction; 0 before.
    first: AtomicU64,
    message_bytes: AtomicUsize,
    /// The panic message: written before the state becomes `PANICKED`, read after.
    message: UnsafeCell<[u8; MESSAGE_BYTES]>,
}

// SAFETY: the message is written by the thread itself, once, before it sets the state, and read only by threads that
// saw that state.
unsafe impl Sync for Progress {}

impl Progress {
    pub fn new() -> Self {
        Self {
            state: AtomicU32::new(RUNNING),
            joiners: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            first: AtomicU64::new(0),
            message_bytes: AtomicUsize::new(0),
            message: UnsafeCell::new([0; MESSAGE_BYTES]),
        }
    }

    /// Whether the thread returned from its work.
    pub fn is_done(&self) -> bool {
        self.state.load(Ordering::SeqCst) == DONE
    }

    /// Whether the thread came to an end after which no thread borrows from its stack.
    pub fn ended_cleanly(&self) -> bool {
        matches!(self.state.load(Ordering::SeqCst), DONE | LEFT_EARLY)
    }

    /// Records the time-stamp counter at the thread's first instruction.
    pub fn set_first(&self, counter: u64) {
        self.first.store(counter, Ordering::Relaxed);
    }

    /// The clock at the thread's first instruction; `None` if the time-stamp counter is no clock, or if the thread has
    /// not begun.
    pub fn began(&self) -> Option<u64> {
        match self.first.load(Ordering::Relaxed) {
            0 => None,
            counter => crate::clock::at_counter(counter),
        }
    }

    /// Notes that another thread is about to end this one.
    pub fn set_ended(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    /// Whether the thread, which has ended, may have left memory that it borrowed in a state that no thread may see.
    pub fn is_broken(&self) -> bool {
        !self.ended_cleanly() && !self.ended.load(Ordering::SeqCst)
    }

    /// Publishes the result, and wakes the joiners.
    pub fn finish(&self) {
        self.state.store(DONE, Ordering::SeqCst);
        let mut waiting = self.joiners.load(Ordering::SeqCst);
        while waiting != 0 {
            sleep::unpark(waiting.trailing_zeros() as usize);
            waiting &= waiting - 1;
        }
    }

    /// Notes that the thread leaves without a result.
    pub fn leave(&self) {
        self.state.store(LEFT_EARLY, Ordering::SeqCst);
    }

    /// Keeps a panic message, cut at `MESSAGE_BYTES`.
    ///
    /// # Safety
    ///
    /// Only the thread itself calls this, at most once.
    pub unsafe fn set_panic(&self, message: &[u8]) {
        let bytes = message.len().min(MESSAGE_BYTES);
        // SAFETY: by the caller's promise no other thread writes, and none reads before the state is set.
        unsafe { (&mut *self.message.get())[..bytes].copy_from_slice(&message[..bytes]) };
        self.message_bytes.store(bytes, Ordering::Relaxed);
        self.state.store(PANICKED, Ordering::SeqCst);
    }

    /// Waits until the thread, which runs as `peer`, has ended. Returns whether it has a result. A peer that goes gives
    /// every other peer a token, so a sleeping joiner wakes in either case.
    pub fn wait(&self, peer: Peer) -> bool {
        self.joiners.fetch_or(Vm.me().bit(), Ordering::SeqCst);
        let mut spins = Vm.spins();
        loop {
            if self.is_done() {
                return true;
            }
            if spins > 0 {
                spins -= 1;
                core::hint::spin_loop();
                continue;
            }
            if gone(peer) {
                // It may have finished and gone since the check above.
                return self.is_done();
            }
            sleep::park(None);
        }
    }

    /// Why the thread, which has ended, has no result.
    pub fn reason(&self) -> Ended {
        match self.state.load(Ordering::SeqCst) {
            PANICKED => {}
            LEFT_EARLY => return Ended::Left,
            _ => return Ended::Died,
        }
        let bytes = self.message_bytes.load(Ordering::Relaxed).min(MESSAGE_BYTES);
        // SAFETY: written before the state was set.
        let message = unsafe { &(&*self.message.get())[..bytes] };
        Ended::Panicked(String::from_utf8_lossy(message).into_owned())
    }
}

/// The place of a thread's result.
pub(super) struct Packet<T>(UnsafeCell<Option<T>>);

// SAFETY: the thread writes it before it publishes that it is done; from then on only its joiner reaches it.
unsafe impl<T: Send> Sync for Packet<T> {}
// SAFETY: as above: the result goes from one thread to another.
unsafe impl<T: Send> Send for Packet<T> {}

impl<T> Packet<T> {
    pub fn new() -> Self {
        Self(UnsafeCell::new(None))
    }

    /// Leaves the result.
    ///
    /// # Safety
    ///
    /// Only the thread itself calls this, before [`Progress::finish`].
    pub unsafe fn put(&self, value: T) {
        // SAFETY: no thread reads before this one is done, by the caller's promise.
        unsafe { *self.0.get() = Some(value) };
    }

    /// Takes the result.
    ///
    /// # Safety
    ///
    /// Only the thread's one joiner calls this, after [`Progress::wait`] returned true.
    pub unsafe fn take(&self) -> Option<T> {
        // SAFETY: no other thread reaches the value any more, by the caller's promise.
        unsafe { (*self.0.get()).take() }
    }
}
