//! A mutex.

use super::{Acquired, Owner};
use crate::error::Error;
use crate::park::{Effort, Group};
use crate::wait::Waiters;
use crate::word::Word;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

/// A mutex without data. It is neither recursive nor fair: a peer that arrives while it changes hands may get it first.
#[derive(Debug, Default)]
#[repr(C)]
pub struct RawMutex<W = AtomicU64> {
    /// [`Peer::word`](crate::park::Peer::word) of the owner, and the poison flag; 0 if free and clean.
    owner: W,
    waiters: Waiters<W>,
}

const _: () = assert!(size_of::<RawMutex>() == 16);

impl RawMutex {
    /// A free mutex.
    pub const fn new() -> Self {
        Self { owner: AtomicU64::new(0), waiters: Waiters::new() }
    }
}

impl<W: Word> RawMutex<W> {
    /// Acquires the mutex, by `deadline` in nanoseconds.
    ///
    /// # Errors
    /// [`Error::TimedOut`] at the deadline; [`Error::Deadlock`] if the caller already holds it. The caller does not
    /// acquire it then.
    #[inline]
    pub fn lock<G>(&self, group: &G, deadline: Option<u64>) -> Result<Acquired, Error>
    where
        G: Group + ?Sized,
    {
        if self.owner.replace(0, group.me().word(), Acquire).is_ok() {
            return Ok(Acquired::Clean);
        }
        self.wait(group, deadline)
    }

    /// Acquires the mutex if it is free at this moment, or if its owner is dead.
    pub fn try_lock<G: Group + ?Sized>(&self, group: &G) -> Option<Acquired> {
        Owner::take(&self.owner, group, Effort::Thorough, Acquire).and_then(Result::ok)
    }

    #[cold]
    fn wait<G>(&self, group: &G, deadline: Option<u64>) -> Result<Acquired, Error>
    where
        G: Group + ?Sized,
    {
        let look = |effort| Owner::take(&self.owner, group, effort, Acquire);
        let waited = self.waiters.wait(group, deadline, look);
        if waited.woken && !matches!(waited.found, Some(Ok(_))) {
            self.waiters.wake_one(group);
        }
        waited.found.unwrap_or(Err(Error::TimedOut))
    }

    /// Releases the mutex, with its data in the state `then`. Returns `false`, and does nothing, if the caller does not
    /// hold it because the others took the caller for dead.
    #[inline]
    pub fn unlock<G: Group + ?Sized>(&self, group: &G, then: Acquired) -> bool {
        let word = self.owner.load(Relaxed);
        let mine = matches!(Owner::from_word(word, group.me()), Owner::Me);
        if !mine || self.owner.replace(word, then.flag(), SeqCst).is_err() {
            return false;
        }
        self.waiters.wake_one(group);
        true
    }
}
