//! One at a time.

use super::{Acquired, Owner};
use crate::error::Error;
use crate::park::{Group, Look};
use crate::wait::Waiters;
use crate::word::Word;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

/// A mutex without data. Not recursive, not fair: who comes while it changes hands may get it first.
#[derive(Debug, Default)]
#[repr(C)]
pub struct RawMutex<W = AtomicU64> {
    /// Owner and poison; 0: free.
    owner: W,
    waiters: Waiters<W>,
}

const _: () = assert!(size_of::<RawMutex>() == 16);

impl RawMutex {
    /// A free one.
    pub const fn new() -> Self {
        Self { owner: AtomicU64::new(0), waiters: Waiters::new() }
    }
}

impl<W: Word> RawMutex<W> {
    /// Takes it. Fails with [`Error::TimedOut`] or [`Error::Deadlock`]; it is not taken then.
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

    /// Takes it if it is free at this moment, or its owner dead.
    pub fn try_lock<G: Group + ?Sized>(&self, group: &G) -> Option<Acquired> {
        Owner::take(&self.owner, group, Look::Thorough, Acquire).and_then(Result::ok)
    }

    #[cold]
    fn wait<G>(&self, group: &G, deadline: Option<u64>) -> Result<Acquired, Error>
    where
        G: Group + ?Sized,
    {
        let look = |how| Owner::take(&self.owner, group, how, Acquire);
        let waited = self.waiters.wait(group, deadline, look);
        if waited.woken && !matches!(waited.found, Some(Ok(_))) {
            self.waiters.wake_one(group);
        }
        waited.found.unwrap_or(Err(Error::TimedOut))
    }

    /// Gives it back, in order or not. `false` where it was not the caller's, and nothing was done: the others took
    /// the caller for dead.
    #[inline]
    pub fn unlock<G: Group + ?Sized>(&self, group: &G, then: Acquired) -> bool {
        let word = self.owner.load(Relaxed);
        let mine = matches!(Owner::of(word, group.me()), Owner::Me);
        if !mine || self.owner.replace(word, then.flag(), SeqCst).is_err() {
            return false;
        }
        self.waiters.wake_one(group);
        true
    }
}
