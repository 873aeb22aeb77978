//! A bounded ring of records between any number of writers and readers.
//!
//! A slot has a *turn*: 2n while it waits for its n-th record, 2n + 1 while it holds that record. It also has an owner
//! while a peer writes or reads it. Turn and owner share one word. A peer claims a slot by one compare-and-exchange of
//! that word, advances the ring's position (any other peer may do this for it), copies the record, and sets the next
//! turn. Several peers copy at the same time.
//!
//! If an owner dies, the next peer that its slot blocks skips the slot. Only the record is lost that the dead peer had
//! not written completely, or had claimed to read.
//!
//! A hostile peer can write anywhere and cannot be identified. It can cause wrong or lost data, [`Error::Corrupt`] or a
//! wait until the deadline. The number of slots, and so the mask, is not in shared memory; a length is read once and
//! then checked; no call retries without end. After more attempts than honest peers can cause, a call treats the ring
//! as full or empty.

use crate::data::Data;
use crate::error::Error;
use crate::park::{Effort, Group, Life, Park, Peer};
use crate::wait::Waiters;
use crate::word::Word;
use core::ops::Deref;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};

/// The ring's positions and waiters. A ring starts as zero bytes.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Control<W = AtomicU64> {
    /// Number of records whose writing has begun.
    written: Line<W>,
    /// Number of records whose reading has begun.
    read: Line<W>,
    writers: Line<Waiters<W>>,
    readers: Line<Waiters<W>>,
}

/// A value in 128 bytes of its own, the amount that the CPU fetches at once.
#[derive(Debug, Default)]
#[repr(C, align(128))]
struct Line<T>(T);

/// A slot's words. Its bytes are in the ring's data.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Slot<W = AtomicU64> {
    /// High half: the turn. Low half: the owner's generation modulo 2^24 and, in the low byte, its number + 1; 0 for
    /// none.
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

/// Bytes of a ring with `slots` slots of `room` bytes each; `None` if the number overflows.
pub fn bytes(slots: usize, room: usize) -> Option<usize> {
    let slot = room.checked_add(size_of::<Slot>())?;
    slots.checked_mul(slot)?.checked_add(size_of::<Control>())
}

/// Maximum number of attempts to claim a slot. Each failed attempt is another peer's success, and there are at most 64
/// peers.
const ATTEMPTS: u32 = 1024;

fn owner(peer: Peer) -> u64 {
    (u64::from(peer.generation()) & 0xff_ffff) << 8 | (u64::from(peer.number()) + 1)
}

/// Whether the owner in `state` is known to be gone, so that it will never finish.
fn is_gone<G: Group + ?Sized>(state: u64, group: &G) -> bool {
    let number = (state as u8).wrapping_sub(1);
    match number {
        0..64 => match group.life(number) {
            Life::NotYet => false,
            Life::Alive(generation) => generation & 0xff_ffff != state as u32 >> 8,
            Life::Dead => true,
        },
        _ => true,
    }
}

/// A ring. `C` points to its [`Control`], `S` to its slots; `D` is the data of the slots, in their order.
#[derive(Debug)]
pub struct Ring<C, S, D> {
    control: C,
    slots: S,
    data: D,
    /// Bytes of each slot's data.
    room: usize,
}

/// A slot that the caller has claimed.
struct Claim {
    index: usize,
    state: u64,
}

/// The operation on a slot.
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

/// The slot at one side's position.
struct Current {
    position: u64,
    index: usize,
    state: u64,
    /// The slot's turn minus the turn for which this side waits.
    ahead: i32,
}

impl<W, C, S, D> Ring<C, S, D>
where
    W: Word,
    C: Deref<Target = Control<W>>,
    S: Deref<Target = [Slot<W>]>,
    D: Data,
{
    /// A ring with these slots. `None` unless their number is a power of two, at least 2, and each has the same share
    /// of `data`, a multiple of 8 bytes.
    pub fn new(control: C, slots: S, data: D) -> Option<Self> {
        let count = slots.len();
        let room = data.bytes().checked_div(count)?;
        let fits = count >= 2 && count.is_power_of_two() && room % 8 == 0;
        fits.then_some(Self { control, slots, data, room })
    }

    /// Maximum bytes of a record.
    pub fn limit(&self) -> usize {
        self.room
    }

    /// Sends a record: waits for a free slot until `deadline` in nanoseconds, copies the record, wakes a reader.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; [`Error::RecordTooLong`]; [`Error::Corrupt`] if another peer wrote to the claimed slot.
    pub fn send<G>(&self, bytes: &[u8], group: &G, deadline: Option<u64>) -> Result<(), Error>
    where
        G: Group + ?Sized,
    {
        self.check_record(bytes)?;
        let waiters = &self.control.writers.0;
        let claim = self.wait(Side::Write, waiters, group, deadline)?;
        self.fill(claim, bytes, group)
    }

    /// Sends a record if there is a free slot; returns whether there was. Fails like [`Ring::send`], but never with
    /// [`Error::TimedOut`].
    pub fn try_send<G: Group + ?Sized>(&self, bytes: &[u8], group: &G) -> Result<bool, Error> {
        self.check_record(bytes)?;
        match self.claim(Side::Write, group, Effort::Thorough) {
            Some(claim) => self.fill(claim, bytes, group).map(|()| true),
            None => Ok(false),
        }
    }

    /// Waits for a record until `deadline` in nanoseconds, copies it to `to`, frees its slot, wakes a writer. Returns
    /// the bytes of the record.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; [`Error::BufferTooShort`] if `to` has less than [`Ring::limit`] bytes; [`Error::Corrupt`]
    /// if a peer broke the protocol: that record is lost.
    pub fn recv<G>(&self, to: &mut [u8], group: &G, deadline: Option<u64>) -> Result<usize, Error>
    where
        G: Group + ?Sized,
    {
        self.check_buffer(to)?;
        let claim = self.wait(Side::Read, &self.control.readers.0, group, deadline)?;
        self.take(claim, to, group)
    }

    /// Like [`Ring::recv`], but returns `None` if there is no record at this moment.
    pub fn try_recv<G>(&self, to: &mut [u8], group: &G) -> Result<Option<usize>, Error>
    where
        G: Group + ?Sized,
    {
        self.check_buffer(to)?;
        match self.claim(Side::Read, group, Effort::Thorough) {
            Some(claim) => self.take(claim, to, group).map(Some),
            None => Ok(None),
        }
    }

    fn check_record(&self, bytes: &[u8]) -> Result<(), Error> {
        let fits = bytes.len() <= self.room;
        fits.then_some(()).ok_or(Error::RecordTooLong { limit: self.room })
    }

    fn check_buffer(&self, to: &[u8]) -> Result<(), Error> {
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
        if let Some(claim) = self.claim(side, group, Effort::Quick) {
            return Ok(claim);
        }
        let waited = waiters.wait(group, deadline, |effort| self.claim(side, group, effort));
        // Two slots may have become claimable while only this peer was woken.
        if waited.woken && self.may_claim(side) {
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

    fn current(&self, side: Side) -> Current {
        let at = self.position(side).load(Acquire);
        let index = at as usize & (self.slots.len() - 1);
        let state = self.slots[index].state.load(SeqCst);
        let count = (at >> self.slots.len().trailing_zeros()) as u32;
        let wanted = count.wrapping_mul(2).wrapping_add(side.parity());
        Current {
            position: at,
            index,
            state,
            ahead: ((state >> 32) as u32).wrapping_sub(wanted) as i32,
        }
    }

    /// Whether a claim may succeed at this moment.
    fn may_claim(&self, side: Side) -> bool {
        let next = self.current(side);
        next.ahead > 0 || next.ahead == 0 && next.state as u32 == 0
    }

    /// Claims the next slot whose turn matches `side`.
    fn claim<G: Group + ?Sized>(&self, side: Side, group: &G, effort: Effort) -> Option<Claim> {
        let position = self.position(side);
        for _ in 0..ATTEMPTS {
            let Current { position: at, index, state, ahead } = self.current(side);
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
                // Another peer has claimed it, perhaps finished: advance the position on its behalf.
                0.. => {
                    let _ = position.replace(at, at.wrapping_add(1), AcqRel);
                }
                // The other side owns it. A dead writer's record is skipped; a dead reader's slot becomes free.
                -1 if owned && effort == Effort::Thorough && is_gone(state, group) => {
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

    /// Sets the next turn of the claimed slot, and wakes one of `waiters`. Fails with [`Error::Corrupt`] if the slot's
    /// word has changed because the others took the caller for dead.
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
