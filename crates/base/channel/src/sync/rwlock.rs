//! A reader-writer lock.
//!
//! A reader first announces itself in a slot of its own and then checks for a writer; a writer first announces itself
//! in the lock's word and then checks for readers. All of these accesses are sequentially consistent and so in one
//! total order: at least one side sees the other. A reader that sees a writer steps back, so writers go first. A writer
//! that releases the lock wakes all waiting readers and one waiting writer, which try again.

use super::{Acquired, Owner};
use crate::error::Error;
use crate::park::{Effort, Group, Peer};
use crate::wait::Waiters;
use crate::word::Word;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

/// A reader-writer lock without data, for peers below number `PEERS`.
///
/// A dead writer leaves the lock poisoned. So does a dead reader, for the next writer: mutexes and atomics let a reader
/// change the data.
#[derive(Debug)]
#[repr(C)]
pub struct RawRwLock<W = AtomicU64, const PEERS: usize = 64> {
    /// [`Peer::word`] of the peer that writes or waits for the readers to finish, and the poison flag; 0 for none.
    writer: W,
    writers: Waiters<W>,
    readers: Waiters<W>,
    /// [`Peer::word`] of each reader, indexed by its number.
    slots: [W; PEERS],
}

const _: () = assert!(size_of::<RawRwLock>() == 24 + 8 * 64);

impl<const PEERS: usize> RawRwLock<AtomicU64, PEERS> {
    /// A free lock.
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

    /// Acquires the lock for reading, by `deadline` in nanoseconds.
    ///
    /// # Errors
    /// [`Error::TimedOut`] at the deadline; [`Error::NotAMember`] if the lock has no slot for the caller's number;
    /// [`Error::Deadlock`] if the caller already holds the lock. The caller does not acquire it then.
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
        let waited =
            self.readers.wait(group, deadline, |effort| self.look_read(group, slot, effort));
        waited.found.unwrap_or(Err(Error::TimedOut))
    }

    #[inline]
    fn try_read<G: Group + ?Sized>(&self, group: &G, slot: &W) -> Option<Acquired> {
        slot.swap(group.me().word(), SeqCst);
        let word = self.writer.load(SeqCst);
        if let Owner::Nobody = Owner::from_word(word, group.me()) {
            return Some(Acquired::from_word(word));
        }
        self.stop_reading(group, slot);
        None
    }

    fn look_read<G>(&self, group: &G, slot: &W, effort: Effort) -> Option<Result<Acquired, Error>>
    where
        G: Group + ?Sized,
    {
        let word = self.writer.load(SeqCst);
        match Owner::from_word(word, group.me()) {
            Owner::Nobody => self.try_read(group, slot).map(Ok),
            Owner::Me => Some(Err(Error::Deadlock)),
            Owner::Other(peer) if effort == Effort::Thorough && Owner::is_gone(peer, group) => {
                let freed = self.writer.replace(word, Acquired::Poisoned.flag(), SeqCst).is_ok();
                if freed {
                    self.wake_next(group);
                }
                freed.then(|| self.try_read(group, slot).map(Ok)).flatten()
            }
            Owner::Other(_) => None,
        }
    }

    /// Releases the lock after reading. Returns `false` if the caller does not hold it for reading.
    #[inline]
    pub fn unlock_read<G: Group + ?Sized>(&self, group: &G) -> bool {
        let me = group.me();
        let held = self.slot(me).is_ok_and(|slot| slot.load(Relaxed) == me.word());
        if let (true, Ok(slot)) = (held, self.slot(me)) {
            self.stop_reading(group, slot);
        }
        held
    }

    /// Clears the caller's slot and wakes a writer that waits for this reader.
    #[inline]
    fn stop_reading<G: Group + ?Sized>(&self, group: &G, slot: &W) {
        slot.swap(0, SeqCst);
        if let Owner::Other(Some(writer)) = Owner::from_word(self.writer.load(SeqCst), group.me()) {
            self.writers.wake(group, writer.number());
        }
    }

    /// Acquires the lock for writing, by `deadline` in nanoseconds.
    ///
    /// # Errors
    /// [`Error::TimedOut`] at the deadline; [`Error::NotAMember`] if the lock has no slot for the caller's number;
    /// [`Error::Deadlock`] if the caller already holds the lock. The caller does not acquire it then.
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
                let look = |effort| Owner::take(&self.writer, group, effort, SeqCst);
                let waited = self.writers.wait(group, deadline, look);
                if waited.woken && !matches!(waited.found, Some(Ok(_))) {
                    self.wake_next(group);
                }
                waited.found.unwrap_or(Err(Error::TimedOut))?
            }
        };
        if self.drain_readers(group, Effort::Quick).is_some() {
            return Ok(acquired);
        }
        let drained =
            self.writers.wait(group, deadline, |effort| self.drain_readers(group, effort));
        let acquired = Acquired::from_word(self.writer.load(Relaxed));
        if drained.found.is_none() {
            self.unlock_write(group, acquired);
            return Err(Error::TimedOut);
        }
        Ok(acquired)
    }

    fn drain_readers<G: Group + ?Sized>(&self, group: &G, effort: Effort) -> Option<()> {
        for (number, slot) in self.slots.iter().enumerate() {
            let word = slot.load(SeqCst);
            if word == 0 {
                continue;
            }
            let reader = Peer::from_word(word).filter(|peer| usize::from(peer.number()) == number);
            if effort == Effort::Quick || !Owner::is_gone(reader, group) {
                return None;
            }
            // Before the slot is cleared: this peer may die, or give up, in between. If the flag is there already, or
            // the others took this peer for dead, nothing changes.
            let mine = group.me().word();
            let _ = self.writer.replace(mine, mine | Acquired::Poisoned.flag(), SeqCst);
            // If this fails, a new peer with this number may be reading: the next check decides.
            slot.replace(word, 0, Acquire).ok()?;
        }
        Some(())
    }

    /// Releases the lock after writing, with its data in the state `then`. Returns `false`, and does nothing, if the
    /// caller does not hold it because the others took the caller for dead.
    pub fn unlock_write<G: Group + ?Sized>(&self, group: &G, then: Acquired) -> bool {
        let word = self.writer.load(Relaxed);
        let mine = matches!(Owner::from_word(word, group.me()), Owner::Me);
        if !mine || self.writer.replace(word, then.flag(), SeqCst).is_err() {
            return false;
        }
        self.wake_next(group);
        true
    }

    fn wake_next<G: Group + ?Sized>(&self, group: &G) {
        self.readers.wake_all(group);
        self.writers.wake_one(group);
    }
}
