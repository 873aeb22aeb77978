//! All or none go on.

use crate::error::Error;
use crate::park::{Group, Life, Look, MAX_PEERS};
use crate::wait::Waiters;
use crate::word::Word;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Set in the phase where a member died.
const BROKEN: u64 = 1 << 63;

/// A barrier over peers that everyone names alike. It can be used again at once.
///
/// A member's arrival is one bit. The bits are set in even phases and cleared in odd ones, so that there is no moment
/// between "all are here" and "nobody is here yet" in which a peer could die.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Barrier<W = AtomicU64> {
    /// How often all went on; and [`BROKEN`].
    phase: W,
    /// Who is here.
    arrived: W,
    waiters: Waiters<W>,
}

const _: () = assert!(size_of::<Barrier>() == 24);

/// The members' bits when all are here.
fn goal(members: u64, phase: u64) -> u64 {
    if phase % 2 == 0 {
        members
    } else {
        0
    }
}

impl Barrier {
    /// Nobody is here yet.
    pub const fn new() -> Self {
        Self { phase: AtomicU64::new(0), arrived: AtomicU64::new(0), waiters: Waiters::new() }
    }
}

impl<W: Word> Barrier<W> {
    /// Waits until all `members` (one bit a peer, the caller's among them) have called; whether this call was the last.
    /// One of them, and only one, gets `true`.
    ///
    /// Fails with [`Error::TimedOut`] at the deadline, or with [`Error::Poisoned`] where a member died that was not
    /// here; one that nobody has seen yet is waited for. The barrier is broken then: this phase fails for everyone, and
    /// who comes later gets [`Error::Poisoned`], until [`Barrier::reset`]. Fails with [`Error::NotAMember`] where the
    /// caller is no member.
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
            self.waiters.wait(group, deadline, |how| self.look(group, members, phase, how));
        waited.found.unwrap_or_else(|| match self.end(group, phase, phase | BROKEN) {
            Ok(true) => Err(Error::TimedOut),
            ended => ended,
        })
    }

    fn look<G>(&self, group: &G, members: u64, phase: u64, how: Look) -> Option<Result<bool, Error>>
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
        if how == Look::Thorough && (0..MAX_PEERS as u8).any(dead) {
            let ended = self.end(group, phase, phase | BROKEN);
            return Some(
                ended.and_then(|broke| if broke { Err(Error::Poisoned) } else { Ok(false) }),
            );
        }
        None
    }

    /// Ends `phase` by `then`, unless somebody else has ended it: one word decides for all. Whether it was us.
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

    /// Makes it as it was at first. Nobody may be waiting.
    pub fn reset(&self) {
        self.arrived.store(0, SeqCst);
        self.phase.store(0, SeqCst);
    }
}
