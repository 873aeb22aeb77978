//! Waits for what somebody else does under the lock.

use super::{Acquired, RawMutex};
use crate::error::Error;
use crate::park::{nap, passed, Group};
use crate::wait::Waiters;
use crate::word::Word;
use core::sync::atomic::AtomicU64;

/// A condition variable: who waits, and nothing else. A bit that is taken away is the notification.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Condvar<W = AtomicU64> {
    waiters: Waiters<W>,
}

const _: () = assert!(size_of::<Condvar>() == 8);

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Somebody notified, or nobody did: the condition may hold.
    Perhaps,
    /// The deadline has passed.
    TimedOut,
}

impl Condvar {
    /// Nobody waits.
    pub const fn new() -> Self {
        Self { waiters: Waiters::new() }
    }
}

impl<W: Word> Condvar<W> {
    /// Gives `mutex` back, which the caller holds as `held`, sleeps until somebody notifies or `deadline`, and takes it
    /// again. Returns for no reason at times, at the latest after a heartbeat: where the notification went to one who
    /// died, the caller still sees what changed.
    ///
    /// Fails where the mutex cannot be had within a heartbeat of the deadline, or with [`Error::Poisoned`] where it was
    /// not the caller's, whom the others took for dead. The caller does not hold it then.
    pub fn wait<G>(
        &self,
        group: &G,
        mutex: &RawMutex<W>,
        held: Acquired,
        deadline: Option<u64>,
    ) -> Result<(Acquired, Woken), Error>
    where
        G: Group + ?Sized,
    {
        let me = group.me().number();
        self.waiters.enter(group);
        if !mutex.unlock(group, held) {
            self.leave(group);
            return Err(Error::Poisoned);
        }
        let mut spins = group.spins();
        while self.waiters.has(me) {
            if spins > 0 {
                spins -= 1;
                group.spin_hint();
            } else {
                nap(group, deadline);
                break;
            }
        }
        let notified = !self.waiters.has(me) || self.waiters.leave(group);
        let late = passed(group, deadline);
        let limit = deadline.map(|at| at.max(group.now()).saturating_add(group.heartbeat()));
        let again = mutex.lock(group, limit).inspect_err(|_| {
            if notified {
                self.waiters.wake_one(group);
            }
        })?;
        Ok((again, if late && !notified { Woken::TimedOut } else { Woken::Perhaps }))
    }

    /// Withdraws; a notification that came meanwhile goes to another.
    fn leave<G: Group + ?Sized>(&self, group: &G) {
        if self.waiters.leave(group) {
            self.waiters.wake_one(group);
        }
    }

    /// Wakes one that waits. Costs one load where nobody does.
    #[inline]
    pub fn notify_one<G: Group + ?Sized>(&self, group: &G) {
        self.waiters.wake_one(group);
    }

    /// Wakes all that wait.
    #[inline]
    pub fn notify_all<G: Group + ?Sized>(&self, group: &G) {
        self.waiters.wake_all(group);
    }
}
