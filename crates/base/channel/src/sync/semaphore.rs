//! A counting semaphore.

use crate::error::Error;
use crate::park::Group;
use crate::wait::Waiters;
use crate::word::Word;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, SeqCst};

/// Maximum number of attempts to take a permit. Each failed attempt is another peer's success, so a group of honest
/// peers does not come near this limit; it bounds the loop against a hostile one.
const ATTEMPTS: u32 = 1 << 12;

/// A counting semaphore. Zero bytes are a semaphore without permits. It has no owner: a permit is lost if the peer that
/// took it dies.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Semaphore<W = AtomicU64> {
    permits: W,
    waiters: Waiters<W>,
}

const _: () = assert!(size_of::<Semaphore>() == 16);

impl Semaphore {
    /// A semaphore with `permits` permits.
    pub const fn new(permits: u64) -> Self {
        Self { permits: AtomicU64::new(permits), waiters: Waiters::new() }
    }
}

impl<W: Word> Semaphore<W> {
    /// Takes a permit, by `deadline` in nanoseconds.
    ///
    /// # Errors
    /// [`Error::TimedOut`] at the deadline.
    #[inline]
    pub fn acquire<G>(&self, group: &G, deadline: Option<u64>) -> Result<(), Error>
    where
        G: Group + ?Sized,
    {
        if self.try_acquire() {
            return Ok(());
        }
        let waited = self.waiters.wait(group, deadline, |_| self.try_acquire().then_some(()));
        // Two permits may have been released while only this peer was woken.
        if waited.woken && self.permits() > 0 {
            self.waiters.wake_one(group);
        }
        waited.found.ok_or(Error::TimedOut)
    }

    /// Takes a permit if there is one.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        let mut permits = self.permits.load(SeqCst);
        for _ in 0..ATTEMPTS {
            if permits == 0 {
                return false;
            }
            match self.permits.replace(permits, permits - 1, Acquire) {
                Ok(_) => return true,
                Err(_) => permits = self.permits.load(SeqCst),
            }
        }
        false
    }

    /// Adds `permits` permits and wakes as many waiters.
    #[inline]
    pub fn release<G: Group + ?Sized>(&self, group: &G, permits: u64) {
        self.permits.fetch_add(permits, SeqCst);
        for _ in 0..permits.min(64) {
            if !self.waiters.wake_one(group) {
                break;
            }
        }
    }

    /// Number of free permits at this moment.
    pub fn permits(&self) -> u64 {
        self.permits.load(SeqCst)
    }
}
