//! Threads that are virtual machines: they share image, statics, heap and stacks, and each has its own processor and
//! isolation. The interface is that of `std::thread`, so that the same source also builds as a program of host threads.
//!
//! # What the end of a thread does to memory
//!
//! A thread dies if it panics, crashes, calls [`exit`](crate::exit), or is ended from outside. Nothing unwinds: that
//! would not help a thread that crashes or is ended, and stable Rust has no personality function without `std`. For all
//! other threads, a thread that died is a thread that stopped for ever at its last instruction, which safe code must
//! allow for anyway: `std::thread::park` in an endless loop does the same. So it is enough that nobody gets what the
//! thread had:
//!
//! 1. What it owned, and its stack, stay allocated for ever. Reference counts that it held are never given back.
//! 2. What it had locked stays locked, as poisoned: [`LockError::Poisoned`](kyozon_channel::border::LockError) gives no
//!    access to data that may be half changed, except if any bytes are a valid value of their type. References to the
//!    data end with the thread, even if it leaked the guard: they borrow from a [`Member`](crate::vm::Member).
//! 3. What it had borrowed, in a [`scope`], is not seen again: the thread that opened the scope ends with it, and never
//!    returns from the scope. The same holds for the scope in which that thread may be, and so on up to a thread that
//!    borrows nothing. If that is the first thread, the program ends, as one with `panic = "abort"` would. Threads of a
//!    scope do not outlive the thread that opened it, either.
//! 4. What it had allocated in the heap half-way: the heap is never used again, and allocations fail, except from the
//!    pieces that each machine keeps. No thread waits for the heap's lock.
//!
//! A thread sees another one gone only after all memory accesses of that one: the tender stops it, and announces its
//! end by a store with release order, which [`JoinHandle::join`] and locks load with acquire order. A thread that has
//! returned publishes its result in the same way. All threads of a family run on one memory, with the ordering rules
//! that threads of a process have.
//!
//! [`leave`], [`ScopedJoinHandle::end`] and recovering poisoned data break these rules, and are `unsafe`. Unsafe code
//! must not take the error of [`JoinHandle::join`] to mean that what the thread used is in a valid state.
//!
//! `Send` says what may cross between threads: statics of one machine only are in [`crate::private`].

mod machine;
mod progress;
mod scope;
mod stack;

pub use machine::leave;
#[cfg_attr(not(feature = "guest"), allow(unused_imports))]
pub(crate) use machine::record_panic;
pub use progress::Ended;
pub use scope::{scope, Scope, ScopedJoinHandle};

use crate::vm::gone;
use crate::Result;
use alloc::sync::Arc;
use kyozon_channel::park::Peer;
use machine::{end, start, Machine};
use progress::Packet;

/// Bytes of a stack by default, without its guard.
const STACK_BYTES: usize = 256 << 10;

/// Settings for a new thread.
#[derive(Clone, Copy, Debug)]
pub struct Builder {
    stack: usize,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// The settings that [`spawn`] uses.
    pub const fn new() -> Self {
        Self { stack: STACK_BYTES }
    }

    /// Sets the size of the stack in bytes.
    pub const fn stack_size(self, bytes: usize) -> Self {
        Self { stack: bytes }
    }

    /// [`spawn`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Full`](crate::Error::Full): there is no room for one more machine or its stack.
    /// [`Error::Argument`](crate::Error::Argument): the size of the stack.
    pub fn spawn<F, T>(self, work: F) -> Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (machine, packet) = start(self.stack, 0, work)?;
        Ok(JoinHandle { machine: Some(machine), packet })
    }
}

/// A handle of a thread, to wait for the thread. If the handle is dropped, the thread goes on.
pub struct JoinHandle<T> {
    machine: Option<Machine>,
    packet: Arc<Packet<T>>,
}

impl<T> JoinHandle<T> {
    fn machine(&self) -> &Machine {
        // Only `join` and `drop` take it, and they consume the handle.
        self.machine.as_ref().unwrap_or_else(|| unreachable!())
    }

    /// Waits until the thread has ended.
    ///
    /// # Errors
    ///
    /// The reason why the thread has no result.
    pub fn join(mut self) -> core::result::Result<T, Ended> {
        let Some(machine) = self.machine.take() else { return Err(Ended::Died) };
        if !machine.progress.wait(machine.peer) {
            let reason = machine.progress.reason();
            machine.detach();
            return Err(reason);
        }
        // SAFETY: the thread is done, and the handle, which is its only joiner, is consumed.
        let value = unsafe { self.packet.take() };
        machine.detach();
        value.ok_or(Ended::Died)
    }

    /// Whether [`JoinHandle::join`] would return at once.
    pub fn is_finished(&self) -> bool {
        let Machine { peer, progress, .. } = self.machine();
        progress.is_done() || gone(*peer)
    }

    /// Number of the thread in its group, and its generation: how many threads had that number before.
    pub fn peer(&self) -> Peer {
        self.machine().peer
    }

    /// Ends the thread at whatever instruction it is, without waiting for it. Its locks are poisoned.
    pub fn end(&self) {
        // SAFETY: the thread has borrowed nothing, as its work is `'static`. Threads in its scopes borrow from it, and
        // end with it.
        unsafe { end(self.peer()) };
    }

    /// The clock at the thread's first instruction; `None` if the time-stamp counter is no clock, or if the thread has
    /// not begun.
    pub fn began(&self) -> Option<u64> {
        self.machine().progress.began()
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if let Some(machine) = self.machine.take() {
            machine.detach();
        }
    }
}

/// Starts a thread.
///
/// # Panics
///
/// Panics if there is no room for one more thread; [`Builder::spawn`] returns an error instead.
pub fn spawn<F, T>(work: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new().spawn(work).unwrap_or_else(|error| panic!("no thread: {error}"))
}
