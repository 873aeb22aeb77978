//! The words that both sides share.

use crate::error::Error;
use crate::park::{has_passed, sleep_until, spin, Effort, Group, Park, Peer};
use crate::word::Word;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

/// Flag in [`Side::waits`]: the side sleeps. Below it, from the top: its generation (31 bits), the number of its sleeps
/// (26 bits) and its number (6 bits).
const ASLEEP: u64 = 1 << 63;
/// Flag in [`Side::peer`]: the side has closed the ring.
const CLOSED: u64 = 1 << 63;

/// The words that one side writes and the other only reads.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Side<W = AtomicU64> {
    /// Bytes that this side has written, or has read and released.
    pub(super) position: W,
    line: [AtomicU64; 7],
    /// The sleep word, see [`ASLEEP`].
    waits: W,
    /// [`Peer::word`], and [`CLOSED`].
    peer: W,
    rest: [AtomicU64; 6],
}

/// Both sides' words. A ring starts as zero bytes.
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
    assert!(core::mem::offset_of!(Side, peer) == 72);
    assert!(core::mem::offset_of!(Control, reader) == 128);
};

impl<W: Word> Control<W> {
    /// All words, which a hostile peer may write to: position, sleep word and identity, first of the writer, then of
    /// the reader.
    pub fn words(&self) -> [&W; 6] {
        let (w, r) = (&self.writer, &self.reader);
        [&w.position, &w.waits, &w.peer, &r.position, &r.waits, &r.peer]
    }
}

/// State of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Partner {
    /// It lives, or has not attached yet.
    Expected,
    Closed,
    Dead,
}

/// What one side remembers of its own sleeps and of the other side's.
#[derive(Debug, Default)]
pub(super) struct Sleep {
    /// The last value of this side's [`Side::waits`], with [`ASLEEP`] clear.
    own: u64,
    /// The last value of the other side's sleep word for which this side woke it: one wake-up per sleep is enough.
    woken: u64,
}

impl<W: Word> Side<W> {
    /// Records `peer` as this side.
    pub(super) fn attach(&self, peer: Peer) -> Sleep {
        // Continues the predecessor's count, so that a sleep of this peer is not mistaken for one of the predecessor.
        let count = self.waits.load(Relaxed) >> 6 & 0x3ff_ffff;
        let generation = u64::from(peer.generation() & 0x7fff_ffff);
        let own = generation << 32 | count << 6 | u64::from(peer.number());
        self.waits.store(own, Relaxed);
        self.peer.store(peer.word(), Release);
        Sleep { own, woken: 0 }
    }

    pub(super) fn close(&self, peer: u64) {
        self.peer.store(peer | CLOSED, SeqCst);
    }

    pub(super) fn partner<G: Group + ?Sized>(&self, group: &G) -> Partner {
        match self.peer.load(SeqCst) {
            0 => Partner::Expected,
            word if word & CLOSED != 0 => Partner::Closed,
            word if Peer::from_word(word).is_some_and(|peer| !group.dead(peer)) => {
                Partner::Expected
            }
            _ => Partner::Dead,
        }
    }

    /// Wakes this side if it sleeps. The caller has already stored what this side shall see; the fence orders that
    /// store before the load of the sleep word. The number comes from this side's own word: a hostile side may cause a
    /// third peer to be woken without need, once per call.
    #[inline]
    pub(super) fn wake<G: Park + ?Sized>(&self, group: &G, sleep: &mut Sleep) {
        W::fence(SeqCst);
        let waits = self.waits.load(Relaxed);
        if waits & ASLEEP != 0 && waits != sleep.woken {
            sleep.woken = waits;
            group.unpark((waits % 64) as u8);
        }
    }

    /// Spins, then sleeps, until `next` finds something or `other` will produce nothing more. `deadline` is in
    /// nanoseconds.
    pub(super) fn wait<G: Group + ?Sized, R>(
        &self,
        other: &Self,
        group: &G,
        sleep: &mut Sleep,
        deadline: Option<u64>,
        mut next: impl FnMut() -> Result<Option<R>, Error>,
    ) -> Result<R, Error> {
        let look = |effort| {
            // The state comes first: what the other side did before it went away is visible to `next` then.
            let partner = match effort {
                Effort::Quick => Partner::Expected,
                Effort::Thorough => other.partner(group),
            };
            next().transpose().or(match partner {
                Partner::Expected => None,
                Partner::Closed => Some(Err(Error::Closed)),
                Partner::Dead => Some(Err(Error::PeerDied)),
            })
        };
        self.wait_until(group, sleep, deadline, look).unwrap_or(Err(Error::TimedOut))
    }

    /// Spins, then sleeps, until `look` finds something; `None` if the deadline passed.
    fn wait_until<G: Park + ?Sized, R>(
        &self,
        group: &G,
        sleep: &mut Sleep,
        deadline: Option<u64>,
        mut look: impl FnMut(Effort) -> Option<R>,
    ) -> Option<R> {
        if let Some(found) = spin(group, deadline, &mut look) {
            return Some(found);
        }
        loop {
            let count = (sleep.own >> 6).wrapping_add(1) & 0x3ff_ffff;
            sleep.own = sleep.own & !(0x3ff_ffff << 6) | count << 6;
            self.waits.store(sleep.own | ASLEEP, SeqCst);
            let found = look(Effort::Thorough);
            if found.is_none() && !has_passed(group, deadline) {
                sleep_until(group, deadline);
                self.waits.store(sleep.own, Relaxed);
                continue;
            }
            self.waits.store(sleep.own, Relaxed);
            return found;
        }
    }
}
