//! A barrier: all members continue, or none.

use crate::error::Error;
use crate::park::{Effort, Group, Life, MAX_PEERS};
use crate::wait::Waiters;
use crate::word::Word;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Flag in the phase: a member died or a deadline passed in it.
const BROKEN: u64 = 1 << 63;

/// A barrier. All members name the same set of members. It can be used again at once.
///
/// A member's arrival is one bit. Arriving sets the bit in even phases and clears it in odd ones. So no reset is needed
/// between "all have arrived" and "none has arrived yet", during which a peer could die.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Barrier<W = AtomicU64> {
    /// Number of completed phases, and [`BROKEN`].
    phase: W,
    /// One bit per member, see above.
    arrived: W,
    waiters: Waiters<W>,
}

const _: () = assert!(size_of::<Barrier>() == 24);

/// The members' bits when all have arrived.
fn goal(members: u64, phase: u64) -> u64 {
    if phase.is_multiple_of(2) {
        members
    } else {
        0
    }
}

impl Barrier {
    /// A barrier at which no member has arrived.
    pub const fn new() -> Self {
        Self { phase: AtomicU64::new(0), arrived: AtomicU64::new(0), waiters: Waiters::new() }
    }
}

impl<W: Word> Barrier<W> {
    /// Waits until all `members` (one bit per peer, including the caller's) have called. Returns `true` to exactly one
    /// of them.
    ///
    /// # Errors
    /// [`Error::TimedOut`] at the deadline, in nanoseconds; [`Error::Poisoned`] if a member died before it arrived; a
    /// member that never existed so far is waited for. Both errors break the barrier: this phase fails for all members,
    /// and later calls get [`Error::Poisoned`], until [`Barrier::reset`]. [`Error::NotAMember`] if `members` does not
    /// contain the caller; this does not affect the barrier.
    pub fn wait<G>(&self, group: &G, members: u64, deadline: Option<u64>) -> Result<bool, Error>
    where
        G: Group + ?Sized,
    {
        let bit = group.me().bit();
        if members & bit == 0 {
            return Err(Error::NotAMember);
        }
        let phase = self.phase.load(SeqCst);
        if phase & BROKEN != 0 {
            return Err(Error::Poisoned);
        }
        let goal = goal(members, phase);
        let before = match goal {
            0 => self.arrived.fetch_and(!bit, SeqCst),
            _ => self.arrived.fetch_or(bit, SeqCst),
        };
        if (before ^ goal) & members & !bit == 0 {
            return self.end(group, phase, phase + 1);
        }
        let waited =
            self.waiters.wait(group, deadline, |effort| self.check(group, members, phase, effort));
        waited.found.unwrap_or_else(|| match self.end(group, phase, phase | BROKEN) {
            Ok(true) => Err(Error::TimedOut),
            ended => ended,
        })
    }

    fn check<G>(
        &self,
        group: &G,
        members: u64,
        phase: u64,
        effort: Effort,
    ) -> Option<Result<bool, Error>>
    where
        G: Group + ?Sized,
    {
        if self.phase.load(SeqCst) != phase {
            return Some(self.end(group, phase, phase));
        }
        let missing = (self.arrived.load(SeqCst) ^ goal(members, phase)) & members;
        if missing == 0 {
            return Some(self.end(group, phase, phase + 1));
        }
        let dead = |number: u8| missing & 1 << number != 0 && group.life(number) == Life::Dead;
        if effort == Effort::Thorough && (0..MAX_PEERS as u8).any(dead) {
            let ended = self.end(group, phase, phase | BROKEN);
            return Some(
                ended.and_then(|broke| if broke { Err(Error::Poisoned) } else { Ok(false) }),
            );
        }
        None
    }

    /// Changes `phase` to `then`, unless another member has changed it: one word decides for all. Returns whether this
    /// call changed it.
    fn end<G: Group + ?Sized>(&self, group: &G, phase: u64, then: u64) -> Result<bool, Error> {
        match self.phase.replace(phase, then, SeqCst) {
            Ok(_) => {
                self.waiters.wake_all(group);
                Ok(true)
            }
            Err(now) if now & BROKEN != 0 => Err(Error::Poisoned),
            Err(_) => Ok(false),
        }
    }

    /// Restores the initial state. No member may be waiting.
    pub fn reset(&self) {
        self.arrived.store(0, SeqCst);
        self.phase.store(0, SeqCst);
    }
}
