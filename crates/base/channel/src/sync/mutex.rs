//! A mutex.

use super::{Acquired, Owner};
use crate::error::Error;
use crate::park::{Effort, Group};
use crate::wait::Waiters;
use crate::word::Word;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

/// Flag in the owner's word beside [`POISON`](crate::park::POISON): a peer may wait. A waiter sets it after it has
/// registered, and before it sleeps; the owner that releases the mutex clears it in the same step. So an owner without
/// waiters does not access the mutex after its release.
const CONTENDED: u64 = 1 << 62;

/// Looks of a waiter before its sleep. One is not enough if the mutex changes hands meanwhile.
const TRIES: u32 = 16;

/// A mutex without data. It is neither recursive nor fair: a peer that arrives while it changes hands may get it first.
#[derive(Debug, Default)]
#[repr(C)]
pub struct RawMutex<W = AtomicU64> {
    /// [`Peer::word`](crate::park::Peer::word) of the owner, and two flags; 0 if free and clean.
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
        self.look(group, Effort::Thorough, false).and_then(Result::ok)
    }

    #[cold]
    fn wait<G>(&self, group: &G, deadline: Option<u64>) -> Result<Acquired, Error>
    where
        G: Group + ?Sized,
    {
        // The last look before a sleep is that of a registered waiter.
        let look = |effort| self.look(group, effort, effort == Effort::Thorough);
        let waited = self.waiters.wait(group, deadline, look);
        // A caller that gives up may have had the only wake-up, and have registered again without having marked the
        // owner's word: then the owner wakes nobody.
        if !matches!(waited.found, Some(Ok(_))) {
            self.waiters.wake_one(group);
        }
        waited.found.unwrap_or(Err(Error::TimedOut))
    }

    /// Acquires the mutex if it is free or, with [`Effort::Thorough`], its owner is dead. Otherwise a caller that
    /// `waits`, and is registered as a waiter, tells the owner.
    fn look<G>(&self, group: &G, effort: Effort, waits: bool) -> Option<Result<Acquired, Error>>
    where
        G: Group + ?Sized,
    {
        let mark = if waits { CONTENDED } else { 0 };
        for _ in 0..TRIES {
            let word = self.owner.load(SeqCst);
            let then = match Owner::from_word(word & !CONTENDED, group.me()) {
                Owner::Nobody if word & CONTENDED == 0 => Acquired::from_word(word),
                Owner::Me => return Some(Err(Error::Deadlock)),
                // No honest peer writes a flag without an owner.
                Owner::Nobody if effort == Effort::Thorough => Acquired::Poisoned,
                Owner::Other(peer) if effort == Effort::Thorough && Owner::is_gone(peer, group) => {
                    Acquired::Poisoned
                }
                Owner::Nobody | Owner::Other(_) if word & mark == mark => return None,
                Owner::Nobody | Owner::Other(_) => {
                    match self.owner.replace(word, word | mark, SeqCst) {
                        Ok(_) => return None,
                        Err(_) => continue,
                    }
                }
            };
            // Other waiters may be left: this owner tries to wake one of them.
            let new = group.me().word() | then.flag() | word & CONTENDED | mark;
            if self.owner.replace(word, new, Acquire).is_ok() {
                return Some(Ok(then));
            }
            if !waits {
                return None;
            }
        }
        // The next sleep ends at once.
        group.unpark(group.me().number());
        None
    }

    /// Releases the mutex, with its data in the state `then`. Returns `false`, and does nothing, if the caller does not
    /// hold it because the others took the caller for dead.
    #[inline]
    pub fn unlock<G: Group + ?Sized>(&self, group: &G, then: Acquired) -> bool {
        self.unlock_with(group, then, || ())
    }

    /// [`RawMutex::unlock`], which calls `contended` first if another peer may wait. Only then is the mutex accessed
    /// after its release: `contended` can keep its next owner from freeing it.
    #[inline]
    pub fn unlock_with<G: Group + ?Sized>(
        &self,
        group: &G,
        then: Acquired,
        contended: impl FnOnce(),
    ) -> bool {
        let word = self.owner.load(Relaxed);
        let is_quiet = matches!(Owner::from_word(word, group.me()), Owner::Me);
        if is_quiet && self.owner.replace(word, then.flag(), SeqCst).is_ok() {
            return true;
        }
        self.unlock_contended(group, then, contended)
    }

    #[cold]
    fn unlock_contended<G: Group + ?Sized>(
        &self,
        group: &G,
        then: Acquired,
        contended: impl FnOnce(),
    ) -> bool {
        let word = self.owner.load(Relaxed);
        if !matches!(Owner::from_word(word & !CONTENDED, group.me()), Owner::Me) {
            return false;
        }
        contended();
        // Nobody changes the word of a live owner that has been told.
        if self.owner.replace(word, then.flag(), SeqCst).is_err() {
            return false;
        }
        self.waiters.wake_one(group);
        true
    }
}
