//! Many who read, or one who writes.
//!
//! A reader says in a slot of its own that it reads, and then looks whether somebody writes; a writer says that it
//! writes, and then looks whether somebody reads. Both do so in one total order, so one of them sees the other. A
//! reader that sees a writer steps back: writers go first. When one is done, readers and one writer are woken and try.

use super::{Acquired, Owner};
use crate::error::Error;
use crate::park::{Group, Look, Peer};
use crate::wait::Waiters;
use crate::word::Word;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

/// A reader-writer lock without data, for peers below number `PEERS`.
///
/// A dead reader changed nothing and is passed over. A dead writer leaves the lock poisoned.
#[derive(Debug)]
#[repr(C)]
pub struct RawRwLock<W = AtomicU64, const PEERS: usize = 64> {
    /// Who writes or waits until he may, and poison; 0: nobody.
    writer: W,
    writers: Waiters<W>,
    readers: Waiters<W>,
    /// [`Peer::word`] of each that reads, by its number.
    slots: [W; PEERS],
}

const _: () = assert!(size_of::<RawRwLock>() == 24 + 8 * 64);

impl<const PEERS: usize> RawRwLock<AtomicU64, PEERS> {
    /// A free one.
    pub const fn new() -> Self {
        Self {
            writer: AtomicU64::new(0),
            writers: Waiters::new(),
            readers: Waiters::new(),
            slots: [const { AtomicU64::new(0) }; PEERS],
        }
    }
}

impl<W: Word, const PEERS: usize> Default for RawRwLock<W, PEERS> {
    fn default() -> Self {
        Self {
            writer: W::default(),
            writers: Waiters::default(),
            readers: Waiters::default(),
            slots: core::array::from_fn(|_| W::default()),
        }
    }
}

impl<W: Word, const PEERS: usize> RawRwLock<W, PEERS> {
    fn slot(&self, peer: Peer) -> Result<&W, Error> {
        self.slots.get(usize::from(peer.number())).ok_or(Error::NotAMember)
    }

    /// Takes it to read. Fails with [`Error::TimedOut`], [`Error::NotAMember`] or [`Error::Deadlock`]; it is not taken
    /// then.
    #[inline]
    pub fn read<G>(&self, group: &G, deadline: Option<u64>) -> Result<Acquired, Error>
    where
        G: Group + ?Sized,
    {
        let slot = self.slot(group.me())?;
        if slot.load(Relaxed) == group.me().word() {
            return Err(Error::Deadlock);
        }
        if let Some(acquired) = self.try_read(group, slot) {
            return Ok(acquired);
        }
        let waited = self.readers.wait(group, deadline, |how| self.look_read(group, slot, how));
        waited.found.unwrap_or(Err(Error::TimedOut))
    }

    #[inline]
    fn try_read<G: Group + ?Sized>(&self, group: &G, slot: &W) -> Option<Acquired> {
        slot.swap(group.me().word(), SeqCst);
        let word = self.writer.load(SeqCst);
        if let Owner::Nobody = Owner::of(word, group.me()) {
            return Some(Acquired::of(word));
        }
        self.leave(group, slot);
        None
    }

    fn look_read<G>(&self, group: &G, slot: &W, how: Look) -> Option<Result<Acquired, Error>>
    where
        G: Group + ?Sized,
    {
        let word = self.writer.load(SeqCst);
        match Owner::of(word, group.me()) {
            Owner::Nobody => self.try_read(group, slot).map(Ok),
            Owner::Me => Some(Err(Error::Deadlock)),
            Owner::Other(peer) if how == Look::Thorough && Owner::gone(peer, group) => {
                let freed = self.writer.replace(word, Acquired::Poisoned.flag(), SeqCst).is_ok();
                if freed {
                    self.hand_on(group);
                }
                freed.then(|| self.try_read(group, slot).map(Ok)).flatten()
            }
            Owner::Other(_) => None,
        }
    }

    /// Gives it back after reading. `false` where the caller did not have it.
    #[inline]
    pub fn unlock_read<G: Group + ?Sized>(&self, group: &G) -> bool {
        let me = group.me();
        let held = self.slot(me).is_ok_and(|slot| slot.load(Relaxed) == me.word());
        if let (true, Ok(slot)) = (held, self.slot(me)) {
            self.leave(group, slot);
        }
        held
    }

    /// Reads no longer; a writer that waits for it is woken.
    #[inline]
    fn leave<G: Group + ?Sized>(&self, group: &G, slot: &W) {
        slot.swap(0, SeqCst);
        if let Owner::Other(Some(writer)) = Owner::of(self.writer.load(SeqCst), group.me()) {
            self.writers.wake(group, writer.number());
        }
    }

    /// Takes it to write. Fails with [`Error::TimedOut`], [`Error::NotAMember`] or [`Error::Deadlock`]; it is not taken
    /// then.
    pub fn write<G>(&self, group: &G, deadline: Option<u64>) -> Result<Acquired, Error>
    where
        G: Group + ?Sized,
    {
        let me = group.me();
        if self.slot(me)?.load(Relaxed) == me.word() {
            return Err(Error::Deadlock);
        }
        let acquired = match self.writer.replace(0, me.word(), SeqCst) {
            Ok(_) => Acquired::Clean,
            Err(_) => {
                let look = |how| Owner::take(&self.writer, group, how, SeqCst);
                let waited = self.writers.wait(group, deadline, look);
                if waited.woken && !matches!(waited.found, Some(Ok(_))) {
                    self.hand_on(group);
                }
                waited.found.unwrap_or(Err(Error::TimedOut))?
            }
        };
        if self.nobody_reads(group, Look::Quick).is_some() {
            return Ok(acquired);
        }
        let drained = self.writers.wait(group, deadline, |how| self.nobody_reads(group, how));
        if drained.found.is_none() {
            self.unlock_write(group, acquired);
            return Err(Error::TimedOut);
        }
        Ok(acquired)
    }

    fn nobody_reads<G: Group + ?Sized>(&self, group: &G, how: Look) -> Option<()> {
        for (number, slot) in self.slots.iter().enumerate() {
            let word = slot.load(SeqCst);
            if word == 0 {
                continue;
            }
            let reader = Peer::from_word(word).filter(|peer| usize::from(peer.number()) == number);
            if how == Look::Quick || !Owner::gone(reader, group) {
                return None;
            }
            // Perhaps its number lives again and reads: then we look again.
            slot.replace(word, 0, Acquire).ok()?;
        }
        Some(())
    }

    /// Gives it back after writing, in order or not. `false` where it was not the caller's, and nothing was done: the
    /// others took the caller for dead.
    pub fn unlock_write<G: Group + ?Sized>(&self, group: &G, then: Acquired) -> bool {
        let word = self.writer.load(Relaxed);
        let mine = matches!(Owner::of(word, group.me()), Owner::Me);
        if !mine || self.writer.replace(word, then.flag(), SeqCst).is_err() {
            return false;
        }
        self.hand_on(group);
        true
    }

    fn hand_on<G: Group + ?Sized>(&self, group: &G) {
        self.readers.wake_all(group);
        self.writers.wake_one(group);
    }
}
