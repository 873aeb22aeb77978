//! As many at a time as there are permits.

use crate::error::Error;
use crate::park::Group;
use crate::wait::Waiters;
use crate::word::Word;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, SeqCst};

/// Attempts at a permit that others take or give at the same time. Each that fails was somebody's success, so a group
/// of honest peers does not come near it.
const ATTEMPTS: u32 = 1 << 12;

/// A counting semaphore. Zero bytes are one without permits. It has no owner: nobody learns that a peer died with a
/// permit.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Semaphore<W = AtomicU64> {
    permits: W,
    waiters: Waiters<W>,
}

const _: () = assert!(size_of::<Semaphore>() == 16);

impl Semaphore {
    /// With so many permits.
    pub const fn new(permits: u64) -> Self {
        Self { permits: AtomicU64::new(permits), waiters: Waiters::new() }
    }
}

impl<W: Word> Semaphore<W> {
    /// Takes a permit. Fails with [`Error::TimedOut`].
    #[inline]
    pub fn acquire<G>(&self, group: &G, deadline: Option<u64>) -> Result<(), Error>
    where
        G: Group + ?Sized,
    {
        if self.try_acquire() {
            return Ok(());
        }
        let waited = self.waiters.wait(group, deadline, |_| self.try_acquire().then_some(()));
        // Two permits may have come while only this peer was woken.
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

    /// Gives `permits` permits.
    #[inline]
    pub fn release<G: Group + ?Sized>(&self, group: &G, permits: u64) {
        self.permits.fetch_add(permits, SeqCst);
        for _ in 0..permits.min(64) {
            if !self.waiters.wake_one(group) {
                break;
            }
        }
    }

    /// Permits at this moment.
    pub fn permits(&self) -> u64 {
        self.permits.load(SeqCst)
    }
}
