//! A bounded ring of records between any number of peers who write and who read.
//!
//! A slot has a *turn*: 2n where it waits for its n-th record, 2n + 1 where it has it; and an owner while somebody
//! writes or reads there. Both are one word. Who wants a slot takes it by one exchange of that word, moves the ring's
//! position on, which anybody may do for him, copies, and sets the next turn. Several copy at the same time.
//!
//! Where an owner died, his slot is skipped by whom it stops: a record that was not complete, or that a dead reader had
//! taken, is lost, and nothing else.
//!
//! Hostile peers write anywhere, so there is no telling them apart: they cause wrong or lost data, [`Error::Corrupt`]
//! or a wait until the deadline. The number of slots, and so the mask, is not in the ring; a length is checked after
//! it was read once; no call tries for ever. After more attempts than honest peers can cause it is as if the ring were
//! full or empty.

use crate::data::Data;
use crate::error::Error;
use crate::park::{Group, Life, Look, Park, Peer};
use crate::wait::Waiters;
use crate::word::Word;
use core::ops::Deref;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};

/// Where the ring stands, and who waits. Zero is how a ring begins.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Control<W = AtomicU64> {
    /// Records that were begun to be written, and to be read.
    written: Line<W>,
    read: Line<W>,
    writers: Line<Waiters<W>>,
    readers: Line<Waiters<W>>,
}

/// A value on 128 bytes of its own: what the CPU fetches at once.
#[derive(Debug, Default)]
#[repr(C, align(128))]
struct Line<T>(T);

/// A slot's words; its bytes are in the ring's data.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Slot<W = AtomicU64> {
    /// Turn (high half) and owner: generation modulo 2^24, then number + 1; 0: nobody.
    state: W,
    /// Bytes of the record.
    len: W,
}

const _: () = {
    assert!(size_of::<Control>() == 512 && align_of::<Control>() == 128);
    assert!(size_of::<Slot>() == 64 && align_of::<Slot>() == 64);
    assert!(core::mem::offset_of!(Slot, len) == 8);
};

impl<W: Word> Control<W> {
    /// Every word: what a hostile peer may write to.
    pub fn words(&self) -> [&W; 4] {
        [&self.written.0, &self.read.0, &self.writers.0 .0, &self.readers.0 .0]
    }
}

impl<W: Word> Slot<W> {
    /// Every word: what a hostile peer may write to.
    pub fn words(&self) -> [&W; 2] {
        [&self.state, &self.len]
    }
}

/// Bytes of a ring with so many slots of `room` bytes; `None` where there is no such number.
pub fn bytes(slots: usize, room: usize) -> Option<usize> {
    let slot = room.checked_add(size_of::<Slot>())?;
    slots.checked_mul(slot)?.checked_add(size_of::<Control>())
}

/// Attempts at a slot. Each that fails was another peer's success, and there are at most 64 of them.
const ATTEMPTS: u32 = 1024;

fn owner(peer: Peer) -> u64 {
    (u64::from(peer.generation()) & 0xff_ffff) << 8 | (u64::from(peer.number()) + 1)
}

/// Whether the owner in `state` will never be done.
fn gone<G: Group + ?Sized>(state: u64, group: &G) -> bool {
    let number = (state as u8).wrapping_sub(1);
    match number {
        0..64 => match group.life(number) {
            Life::Alive(generation) => generation & 0xff_ffff != state as u32 >> 8,
            _ => true,
        },
        _ => true,
    }
}

/// A ring. `C` leads to its [`Control`], `S` to its slots, `D` is their data, the first slot's first.
#[derive(Debug)]
pub struct Ring<C, S, D> {
    control: C,
    slots: S,
    data: D,
    /// Bytes of a slot.
    room: usize,
}

/// A slot that is ours.
struct Claim {
    index: usize,
    state: u64,
}

/// What is done to a slot.
#[derive(Clone, Copy)]
enum Side {
    Write,
    Read,
}

impl Side {
    fn parity(self) -> u32 {
        match self {
            Self::Write => 0,
            Self::Read => 1,
        }
    }
}

/// The slot at which one side stands.
struct Next {
    at: u64,
    index: usize,
    state: u64,
    /// By how much its turn is beyond what the side waits for.
    ahead: i32,
}

impl<W, C, S, D> Ring<C, S, D>
where
    W: Word,
    C: Deref<Target = Control<W>>,
    S: Deref<Target = [Slot<W>]>,
    D: Data,
{
    /// The ring with these slots, a power of two and at least two, which share the data evenly, multiples of 8 bytes.
    /// `None` where they do not.
    pub fn new(control: C, slots: S, data: D) -> Option<Self> {
        let count = slots.len();
        let room = data.bytes().checked_div(count)?;
        let fits = count >= 2 && count.is_power_of_two() && room % 8 == 0;
        fits.then_some(Self { control, slots, data, room })
    }

    /// Most bytes of a record.
    pub fn limit(&self) -> usize {
        self.room
    }

    /// Sends a record: waits for a free slot, copies, wakes a reader.
    ///
    /// Fails with [`Error::TimedOut`]; with [`Error::RecordTooLong`]; with [`Error::Corrupt`] where somebody wrote to the
    /// slot that was ours.
    pub fn send<G>(&self, bytes: &[u8], group: &G, deadline: Option<u64>) -> Result<(), Error>
    where
        G: Group + ?Sized,
    {
        self.fits(bytes)?;
        let waiters = &self.control.writers.0;
        let claim = self.wait(Side::Write, waiters, group, deadline)?;
        self.fill(claim, bytes, group)
    }

    /// Sends a record if there is a free slot; whether there was.
    pub fn try_send<G: Group + ?Sized>(&self, bytes: &[u8], group: &G) -> Result<bool, Error> {
        self.fits(bytes)?;
        match self.claim(Side::Write, group, Look::Thorough) {
            Some(claim) => self.fill(claim, bytes, group).map(|()| true),
            None => Ok(false),
        }
    }

    /// Waits for a record, copies it to `to`, frees its slot, wakes a writer. Bytes of the record.
    ///
    /// Fails with [`Error::TimedOut`]; with [`Error::BufferTooShort`] where `to` has less than [`Ring::limit`] bytes; with
    /// [`Error::Corrupt`] where somebody did not keep the protocol: that record is lost.
    pub fn recv<G>(&self, to: &mut [u8], group: &G, deadline: Option<u64>) -> Result<usize, Error>
    where
        G: Group + ?Sized,
    {
        self.holds(to)?;
        let claim = self.wait(Side::Read, &self.control.readers.0, group, deadline)?;
        self.take(claim, to, group)
    }

    /// As [`Ring::recv`], but `None` where there is no record at this moment.
    pub fn try_recv<G>(&self, to: &mut [u8], group: &G) -> Result<Option<usize>, Error>
    where
        G: Group + ?Sized,
    {
        self.holds(to)?;
        match self.claim(Side::Read, group, Look::Thorough) {
            Some(claim) => self.take(claim, to, group).map(Some),
            None => Ok(None),
        }
    }

    fn fits(&self, bytes: &[u8]) -> Result<(), Error> {
        let fits = bytes.len() <= self.room;
        fits.then_some(()).ok_or(Error::RecordTooLong { limit: self.room })
    }

    fn holds(&self, to: &[u8]) -> Result<(), Error> {
        let holds = to.len() >= self.room;
        holds.then_some(()).ok_or(Error::BufferTooShort { needed: self.room })
    }

    fn wait<G>(
        &self,
        side: Side,
        waiters: &Waiters<W>,
        group: &G,
        deadline: Option<u64>,
    ) -> Result<Claim, Error>
    where
        G: Group + ?Sized,
    {
        if let Some(claim) = self.claim(side, group, Look::Quick) {
            return Ok(claim);
        }
        let waited = waiters.wait(group, deadline, |how| self.claim(side, group, how));
        // Two slots may have become ready while only this peer was woken.
        if waited.woken && self.ready(side) {
            waiters.wake_one(group);
        }
        waited.found.ok_or(Error::TimedOut)
    }

    fn position(&self, side: Side) -> &W {
        match side {
            Side::Write => &self.control.written.0,
            Side::Read => &self.control.read.0,
        }
    }

    fn next(&self, side: Side) -> Next {
        let at = self.position(side).load(Acquire);
        let index = at as usize & (self.slots.len() - 1);
        let state = self.slots[index].state.load(SeqCst);
        let count = (at >> self.slots.len().trailing_zeros()) as u32;
        let wanted = count.wrapping_mul(2).wrapping_add(side.parity());
        Next { at, index, state, ahead: ((state >> 32) as u32).wrapping_sub(wanted) as i32 }
    }

    /// Whether there may be a slot to take.
    fn ready(&self, side: Side) -> bool {
        let next = self.next(side);
        next.ahead > 0 || next.ahead == 0 && next.state as u32 == 0
    }

    /// Takes the next slot whose turn it is.
    fn claim<G: Group + ?Sized>(&self, side: Side, group: &G, how: Look) -> Option<Claim> {
        let position = self.position(side);
        for _ in 0..ATTEMPTS {
            let Next { at, index, state, ahead } = self.next(side);
            let slot = &self.slots[index];
            let owned = state as u32 != 0;
            match ahead {
                0 if !owned => {
                    let ours = state | owner(group.me());
                    if slot.state.replace(state, ours, AcqRel).is_ok() {
                        let _ = position.replace(at, at.wrapping_add(1), AcqRel);
                        return Some(Claim { index, state: ours });
                    }
                }
                // Somebody has it or had it: we move on for him.
                0.. => {
                    let _ = position.replace(at, at.wrapping_add(1), AcqRel);
                }
                // The other side is there. What a dead writer began is skipped; what a dead reader took is free.
                -1 if owned && how == Look::Thorough && gone(state, group) => {
                    let turn = ((state >> 32) as u32).wrapping_add(1 + side.parity());
                    let freed = slot.state.replace(state, u64::from(turn) << 32, SeqCst).is_ok();
                    if let (true, Side::Read) = (freed, side) {
                        self.control.writers.0.wake_one(group);
                    }
                }
                _ => return None,
            }
        }
        None
    }

    /// Sets the next turn of a slot that is ours, unless we were taken for dead.
    fn pass_on<G>(&self, claim: &Claim, waiters: &Waiters<W>, group: &G) -> Result<(), Error>
    where
        G: Park + ?Sized,
    {
        let next = u64::from(((claim.state >> 32) as u32).wrapping_add(1)) << 32;
        let passed = self.slots[claim.index].state.replace(claim.state, next, SeqCst);
        waiters.wake_one(group);
        passed.map(|_| ()).map_err(|_| Error::Corrupt)
    }

    fn fill<G>(&self, claim: Claim, bytes: &[u8], group: &G) -> Result<(), Error>
    where
        G: Park + ?Sized,
    {
        self.data.write(claim.index * self.room, bytes);
        self.slots[claim.index].len.store(bytes.len() as u64, Relaxed);
        self.pass_on(&claim, &self.control.readers.0, group)
    }

    fn take<G: Park + ?Sized>(
        &self,
        claim: Claim,
        to: &mut [u8],
        group: &G,
    ) -> Result<usize, Error> {
        let len = self.slots[claim.index].len.load(Relaxed);
        let len = usize::try_from(len).ok().filter(|len| *len <= self.room);
        if let Some(to) = len.and_then(|len| to.get_mut(..len)) {
            self.data.read(claim.index * self.room, to);
        }
        self.pass_on(&claim, &self.control.writers.0, group)?;
        len.ok_or(Error::Corrupt)
    }
}

#[cfg(test)]
mod tests;
