//! The words that both sides see.

use crate::error::Error;
use crate::park::{nap, passed, spin, Group, Look, Park, Peer};
use crate::word::Word;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

/// In [`Side::waits`]: it sleeps. Below are its number (6 bits), how often it slept (26) and its generation (31).
const ASLEEP: u64 = 1 << 63;
/// In [`Side::who`]: it has closed the ring.
const CLOSED: u64 = 1 << 63;

/// What one side writes, and the other only reads.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Side<W = AtomicU64> {
    /// Bytes that it wrote, or read and has done with.
    pub(super) position: W,
    line: [AtomicU64; 7],
    waits: W,
    who: W,
    rest: [AtomicU64; 6],
}

/// Both sides' words. Zero is how a ring begins.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Control<W = AtomicU64> {
    pub(super) writer: Side<W>,
    pub(super) reader: Side<W>,
}

const _: () = {
    assert!(size_of::<Control>() == 256 && align_of::<Control>() == 128);
    assert!(core::mem::offset_of!(Side, position) == 0);
    assert!(core::mem::offset_of!(Side, waits) == 64);
    assert!(core::mem::offset_of!(Side, who) == 72);
    assert!(core::mem::offset_of!(Control, reader) == 128);
};

impl<W: Word> Control<W> {
    /// Every word, the writer's first, each side's position, sleep and name: what a hostile peer may write to.
    pub fn words(&self) -> [&W; 6] {
        let (w, r) = (&self.writer, &self.reader);
        [&w.position, &w.waits, &w.who, &r.position, &r.waits, &r.who]
    }
}

/// What is known of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Partner {
    /// It lives, or is not there yet.
    Expected,
    Closed,
    Dead,
}

/// What one side knows of its own sleeps, and of the other's.
#[derive(Debug, Default)]
pub(super) struct Sleep {
    /// The last value of our [`Side::waits`], [`ASLEEP`] clear.
    mine: u64,
    /// The last value of theirs for which we woke them: once a sleep is enough.
    rung: u64,
}

impl<W: Word> Side<W> {
    /// Says who this side is.
    pub(super) fn attach(&self, peer: Peer) -> Sleep {
        // Goes on with the count of who was here before: a sleep is not taken for one of his.
        let count = self.waits.load(Relaxed) >> 6 & 0x3ff_ffff;
        let generation = u64::from(peer.generation() & 0x7fff_ffff);
        let mine = generation << 32 | count << 6 | u64::from(peer.number());
        self.waits.store(mine, Relaxed);
        self.who.store(peer.word(), Release);
        Sleep { mine, rung: 0 }
    }

    pub(super) fn close(&self, peer: u64) {
        self.who.store(peer | CLOSED, SeqCst);
    }

    pub(super) fn partner<G: Group + ?Sized>(&self, group: &G) -> Partner {
        match self.who.load(SeqCst) {
            0 => Partner::Expected,
            word if word & CLOSED != 0 => Partner::Closed,
            word if Peer::from_word(word).is_some_and(|peer| group.alive(peer)) => {
                Partner::Expected
            }
            _ => Partner::Dead,
        }
    }

    /// Wakes this side where it sleeps. What it shall see was stored before. Its number is its own word: a hostile side
    /// may have a third peer woken, for nothing, and once a call.
    #[inline]
    pub(super) fn wake<G: Park + ?Sized>(&self, group: &G, sleep: &mut Sleep) {
        W::fence(SeqCst);
        let waits = self.waits.load(Relaxed);
        if waits & ASLEEP != 0 && waits != sleep.rung {
            sleep.rung = waits;
            group.unpark((waits % 64) as u8);
        }
    }

    /// Spins, then sleeps, until there is what `next` looks for, or nothing more to come from `other`.
    pub(super) fn wait<G: Group + ?Sized, R>(
        &self,
        other: &Self,
        group: &G,
        sleep: &mut Sleep,
        deadline: Option<u64>,
        mut next: impl FnMut() -> Result<Option<R>, Error>,
    ) -> Result<R, Error> {
        let look = |how| {
            // First: what it did before it went away is there then.
            let partner = match how {
                Look::Quick => Partner::Expected,
                Look::Thorough => other.partner(group),
            };
            next().transpose().or(match partner {
                Partner::Expected => None,
                Partner::Closed => Some(Err(Error::Closed)),
                Partner::Dead => Some(Err(Error::PeerDied)),
            })
        };
        self.wait_until(group, sleep, deadline, look).unwrap_or(Err(Error::TimedOut))
    }

    /// Spins, then sleeps, until `look` finds something; `None` where the deadline passed.
    fn wait_until<G: Park + ?Sized, R>(
        &self,
        group: &G,
        sleep: &mut Sleep,
        deadline: Option<u64>,
        mut look: impl FnMut(Look) -> Option<R>,
    ) -> Option<R> {
        if let Some(found) = spin(group, deadline, &mut look) {
            return Some(found);
        }
        loop {
            let count = (sleep.mine >> 6).wrapping_add(1) & 0x3ff_ffff;
            sleep.mine = sleep.mine & !(0x3ff_ffff << 6) | count << 6;
            self.waits.store(sleep.mine | ASLEEP, SeqCst);
            let found = look(Look::Thorough);
            if found.is_none() && !passed(group, deadline) {
                nap(group, deadline);
                self.waits.store(sleep.mine, Relaxed);
                continue;
            }
            self.waits.store(sleep.mine, Relaxed);
            return found;
        }
    }
}
