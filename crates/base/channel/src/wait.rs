//! The set of waiters: one bit per peer.
//!
//! A waiter sets its bit, checks the condition again, sleeps, and clears its bit. A peer that makes the condition true
//! does so by a sequentially consistent read-modify-write, and then loads the bits. These four accesses (bit and
//! condition by each side) are in one total order, so at least one side sees the other: no wake-up is lost. If no
//! peer sleeps, waking costs one load.
//!
//! A mutex saves its owner that load: a waiter also marks the owner's word, before it sleeps (`sync/mutex.rs`).
//!
//! A peer that wakes another clears its bit first. So two wake-ups wake two peers, and a bit that a dead peer left
//! behind costs at most one wake-up. A waiter whose bit was cleared by another peer, but that does not need the
//! wake-up, passes it on.

use crate::park::{has_passed, sleep_until, spin, Effort, Park};
use crate::word::Word;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The word with one bit per waiting peer.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Waiters<W>(pub(crate) W);

/// How a wait ended.
#[derive(Debug)]
pub(crate) struct Waited<R> {
    /// What the waiter found; `None` if its deadline passed.
    pub found: Option<R>,
    /// Another peer has woken the waiter, or is about to.
    pub woken: bool,
}

impl Waiters<AtomicU64> {
    /// An empty set.
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl<W: Word> Waiters<W> {
    /// Wakes one waiter, the next in number after the caller. Returns whether there was one.
    pub fn wake_one<G: Park + ?Sized>(&self, group: &G) -> bool {
        let me = group.me();
        let mut left = self.0.load(SeqCst) & !me.bit();
        while left != 0 {
            let turn = u32::from(me.number());
            let number = (left.rotate_right(turn).trailing_zeros() + turn) as u8 % 64;
            left &= !(1 << number);
            if self.wake(group, number) {
                return true;
            }
        }
        false
    }

    /// Wakes every waiter except the caller.
    pub fn wake_all<G: Park + ?Sized>(&self, group: &G) {
        if self.0.load(SeqCst) == 0 {
            return;
        }
        let mut left = self.0.swap(0, SeqCst) & !group.me().bit();
        while left != 0 {
            group.unpark(left.trailing_zeros() as u8);
            left &= left - 1;
        }
    }

    /// Wakes peer `number` if it waits. Returns whether it did.
    pub fn wake<G: Park + ?Sized>(&self, group: &G, number: u8) -> bool {
        let bit = 1 << (number % 64);
        let waits = self.0.load(SeqCst) & bit != 0 && self.0.fetch_and(!bit, SeqCst) & bit != 0;
        if waits {
            group.unpark(number % 64);
        }
        waits
    }

    /// Whether peer `number` is registered. It may change at any time.
    pub fn contains(&self, number: u8) -> bool {
        self.0.load(SeqCst) & 1 << (number % 64) != 0
    }

    /// Registers the caller as a waiter.
    pub(crate) fn register<G: Park + ?Sized>(&self, group: &G) {
        self.0.fetch_or(group.me().bit(), SeqCst);
    }

    /// Removes the caller. Returns whether another peer had woken it, or is about to.
    pub(crate) fn unregister<G: Park + ?Sized>(&self, group: &G) -> bool {
        let bit = group.me().bit();
        self.0.fetch_and(!bit, SeqCst) & bit == 0
    }

    /// Spins, then sleeps, until `look` finds something or `deadline` (nanoseconds) passes.
    pub(crate) fn wait<G: Park + ?Sized, R>(
        &self,
        group: &G,
        deadline: Option<u64>,
        mut look: impl FnMut(Effort) -> Option<R>,
    ) -> Waited<R> {
        let found = spin(group, deadline, &mut look);
        if found.is_some() {
            return Waited { found, woken: false };
        }
        loop {
            self.register(group);
            let found = look(Effort::Thorough);
            if found.is_some() || has_passed(group, deadline) {
                return Waited { found, woken: self.unregister(group) };
            }
            sleep_until(group, deadline);
        }
    }
}
