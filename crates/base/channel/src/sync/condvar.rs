//! A condition variable.

use super::{Acquired, RawMutex};
use crate::error::Error;
use crate::park::{has_passed, sleep_until, Group};
use crate::wait::Waiters;
use crate::word::Word;
use core::sync::atomic::AtomicU64;

/// A condition variable: only the set of waiters. Clearing a waiter's bit notifies it.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Condvar<W = AtomicU64> {
    waiters: Waiters<W>,
}

const _: () = assert!(size_of::<Condvar>() == 8);

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// A notification or a spurious wake-up: the condition may hold.
    Perhaps,
    /// The deadline has passed.
    TimedOut,
}

/// How [`Condvar::sleep`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slept {
    /// Why.
    pub woken: Woken,
    /// A peer has notified the caller.
    notified: bool,
}

impl Condvar {
    /// A condition variable without waiters.
    pub const fn new() -> Self {
        Self { waiters: Waiters::new() }
    }
}

impl<W: Word> Condvar<W> {
    /// Releases `mutex`, which the caller holds, with its data in the state `held`; sleeps until a notification or
    /// until `deadline`, in nanoseconds; and acquires the mutex again.
    ///
    /// It may return for no reason, at the latest after a heartbeat: if a peer that died took the notification, the
    /// caller still sees the change.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if the mutex cannot be acquired within a heartbeat after the deadline; [`Error::Poisoned`]
    /// if the caller did not hold the mutex because the others took the caller for dead. The caller does not hold it
    /// then.
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
        let slept = self.sleep(group, mutex, held, deadline)?;
        let limit =
            deadline.map(|deadline| deadline.max(group.now()).saturating_add(group.heartbeat()));
        let acquired = mutex.lock(group, limit).inspect_err(|_| {
            if slept.notified {
                self.waiters.wake_one(group);
            }
        })?;
        Ok((acquired, slept.woken))
    }

    /// The first part of [`Condvar::wait`]: does not acquire the mutex again, and does not touch the condition variable
    /// after its return. A caller that will not acquire the mutex loses a notification.
    ///
    /// # Errors
    /// [`Error::Poisoned`], as [`Condvar::wait`].
    pub fn sleep<G>(
        &self,
        group: &G,
        mutex: &RawMutex<W>,
        held: Acquired,
        deadline: Option<u64>,
    ) -> Result<Slept, Error>
    where
        G: Group + ?Sized,
    {
        let me = group.me().number();
        self.waiters.register(group);
        if !mutex.unlock(group, held) {
            self.withdraw(group);
            return Err(Error::Poisoned);
        }
        let mut spins = group.spins();
        while self.waiters.contains(me) {
            if spins > 0 {
                spins -= 1;
                group.spin_hint();
            } else {
                sleep_until(group, deadline);
                break;
            }
        }
        let notified = !self.waiters.contains(me) || self.waiters.unregister(group);
        let late = has_passed(group, deadline);
        let woken = if late && !notified { Woken::TimedOut } else { Woken::Perhaps };
        Ok(Slept { woken, notified })
    }

    /// Stops waiting; passes on a notification that arrived meanwhile.
    fn withdraw<G: Group + ?Sized>(&self, group: &G) {
        if self.waiters.unregister(group) {
            self.waiters.wake_one(group);
        }
    }

    /// Wakes one waiter. Costs one load if there is none.
    #[inline]
    pub fn notify_one<G: Group + ?Sized>(&self, group: &G) {
        self.waiters.wake_one(group);
    }

    /// Wakes all waiters. Costs one load if there is none.
    #[inline]
    pub fn notify_all<G: Group + ?Sized>(&self, group: &G) {
        self.waiters.wake_all(group);
    }
}
