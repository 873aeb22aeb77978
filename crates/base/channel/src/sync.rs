//! Locks and other synchronisation primitives, as plain words in shared memory.
//!
//! | type | rule |
//! |---|---|
//! | [`RawMutex`] | one peer at a time |
//! | [`RawRwLock`] | many readers, or one writer |
//! | [`Condvar`] | waits for a change that another peer makes under a mutex |
//! | [`Semaphore`] | at most as many peers at a time as there are permits |
//! | [`Barrier`] | all members continue, or none |
//!
//! Each of them starts as zero bytes. They exclude among honest peers: a peer that can write to the words can break the
//! exclusion, but can cause nothing else. Every call that blocks takes a deadline in nanoseconds on the clock of
//! [`crate::park::Park::now`], or `None` to wait as long as the peers live for which it waits.
//!
//! A lock records its owner and the owner's generation. If the owner died, the next peer gets the lock as
//! [`Acquired::Poisoned`], and so does every later owner, until one releases the lock as [`Acquired::Clean`] to say
//! that the data is consistent again. A semaphore has no owner: if a peer may die, its callers need deadlines.

mod barrier;
mod condvar;
mod mutex;
mod rwlock;
mod semaphore;

pub use barrier::Barrier;
pub use condvar::{Condvar, Slept, Woken};
pub use mutex::RawMutex;
pub use rwlock::RawRwLock;
pub use semaphore::Semaphore;

use crate::error::Error;
use crate::park::{Effort, Group, Peer, POISON};
use crate::word::Word;
use core::sync::atomic::Ordering::{self, SeqCst};

/// State of the protected data, when a lock is acquired or released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Acquired {
    /// Consistent.
    Clean,
    /// A peer died while it held the lock: a change of the data may be incomplete.
    Poisoned,
}

impl Acquired {
    fn from_word(word: u64) -> Self {
        if word & POISON != 0 {
            Self::Poisoned
        } else {
            Self::Clean
        }
    }

    fn flag(self) -> u64 {
        match self {
            Self::Clean => 0,
            Self::Poisoned => POISON,
        }
    }
}

/// The owner, according to a lock's word.
enum Owner {
    Nobody,
    Me,
    /// Another peer, perhaps a dead one; `None` if no honest peer can have written this word.
    Other(Option<Peer>),
}

impl Owner {
    fn from_word(word: u64, me: Peer) -> Self {
        match word & !POISON {
            0 => Self::Nobody,
            word if word == me.word() => Self::Me,
            word => Self::Other(Peer::from_word(word)),
        }
    }

    /// Makes the caller the owner of the lock with the word `lock`, if it is free or, with [`Effort::Thorough`], its
    /// owner is dead. Returns `None` if it has another owner.
    fn take<W, G>(
        lock: &W,
        group: &G,
        effort: Effort,
        order: Ordering,
    ) -> Option<Result<Acquired, Error>>
    where
        W: Word,
        G: Group + ?Sized,
    {
        let me = group.me();
        let word = lock.load(SeqCst);
        // A peer that gets the lock in between sees our waiter bit when it releases the lock.
        let then = match Self::from_word(word, me) {
            Self::Nobody => Acquired::from_word(word),
            Self::Me => return Some(Err(Error::Deadlock)),
            Self::Other(peer) if effort == Effort::Thorough && Self::is_gone(peer, group) => {
                Acquired::Poisoned
            }
            Self::Other(_) => return None,
        };
        lock.replace(word, me.word() | then.flag(), order).ok().map(|_| Ok(then))
    }

    /// Whether `peer` is known to be gone, so that no peer will ever release the lock.
    fn is_gone<G: Group + ?Sized>(peer: Option<Peer>, group: &G) -> bool {
        peer.is_none_or(|peer| group.dead(peer))
    }
}
