//! Locks and what else peers agree by, as plain words in shared memory.
//!
//! | type | what it is |
//! |---|---|
//! | [`RawMutex`] | one at a time |
//! | [`RawRwLock`] | many who read, or one who writes |
//! | [`Condvar`] | waits for what somebody else does under the lock |
//! | [`Semaphore`] | as many at a time as there are permits |
//! | [`Barrier`] | all or none go on |
//!
//! Zero bytes are how each of them begins. They exclude among honest peers: whoever may write to the words may break
//! the exclusion, but causes no more than that. Every call that blocks takes a deadline in nanoseconds on the clock of
//! [`crate::park::Park::now`], or `None` to wait as long as those live whom it waits for.
//!
//! A lock knows its owner and the owner's generation. Where he died, who comes next gets the lock and learns of it
//! ([`Acquired::Poisoned`]); so does everyone after him until somebody says that the data is in order again, by giving
//! the lock back as [`Acquired::Clean`]. A semaphore has no owner: where a peer may die, its callers need deadlines.

mod barrier;
mod condvar;
mod mutex;
mod rwlock;
mod semaphore;

pub use barrier::Barrier;
pub use condvar::{Condvar, Woken};
pub use mutex::RawMutex;
pub use rwlock::RawRwLock;
pub use semaphore::Semaphore;

use crate::error::Error;
use crate::park::{Group, Look, Peer, POISON};
use crate::word::Word;
use core::sync::atomic::Ordering::{self, SeqCst};

/// How a lock was when it was taken, or shall be when it is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Acquired {
    /// In order.
    Clean,
    /// Somebody died in it: what it guards may be half done.
    Poisoned,
}

impl Acquired {
    fn of(word: u64) -> Self {
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

/// What a lock's word says of its owner.
enum Owner {
    Nobody,
    Me,
    /// Perhaps dead; `None` where no peer can have written this.
    Other(Option<Peer>),
}

impl Owner {
    fn of(word: u64, me: Peer) -> Self {
        match word & !POISON {
            0 => Self::Nobody,
            word if word == me.word() => Self::Me,
            word => Self::Other(Peer::from_word(word)),
        }
    }

    /// Makes the caller the owner of the lock whose word this is, if it is free or its owner dead.
    fn take<W, G>(
        lock: &W,
        group: &G,
        how: Look,
        order: Ordering,
    ) -> Option<Result<Acquired, Error>>
    where
        W: Word,
        G: Group + ?Sized,
    {
        let me = group.me();
        let word = lock.load(SeqCst);
        // Somebody else who gets it in between sees that we wait when he gives it back.
        let then = match Self::of(word, me) {
            Self::Nobody => Acquired::of(word),
            Self::Me => return Some(Err(Error::Deadlock)),
            Self::Other(peer) if how == Look::Thorough && Self::gone(peer, group) => {
                Acquired::Poisoned
            }
            Self::Other(_) => return None,
        };
        lock.replace(word, me.word() | then.flag(), order).ok().map(|_| Ok(then))
    }

    /// Whether nobody will ever give the lock back.
    fn gone<G: Group + ?Sized>(peer: Option<Peer>, group: &G) -> bool {
        !peer.is_some_and(|peer| group.alive(peer))
    }
}
