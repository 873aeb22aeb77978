//! Who waits: one bit a peer.
//!
//! A waiter sets its bit, looks again, sleeps, and clears its bit. Who makes it true what others may wait for does so
//! by a sequentially consistent read-modify-write, and then looks whether there are bits. All four accesses are in one
//! total order, so one of the two sees the other: no wake-up is lost, and where nobody sleeps it costs one load.
//!
//! Who wakes a peer takes its bit away first: two wake-ups wake two peers, and a bit that a dead peer left costs one
//! wake-up at most. A waiter whose bit was taken and that does not need what it was woken for hands the wake-up on.

use crate::park::{nap, passed, spin, Look, Park};
use crate::word::Word;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The word with the bits.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Waiters<W>(pub(crate) W);

/// How a wait ended.
#[derive(Debug)]
pub(crate) struct Waited<R> {
    /// What the waiter found; `None` where its deadline passed.
    pub found: Option<R>,
    /// Somebody woke it, or is about to.
    pub woken: bool,
}

impl Waiters<AtomicU64> {
    /// Nobody waits.
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl<W: Word> Waiters<W> {
    /// Wakes one, the next in number after the caller. Whether there was one.
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

    /// Wakes every one.
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

    /// Wakes peer `number` where it waits. Whether it did.
    pub fn wake<G: Park + ?Sized>(&self, group: &G, number: u8) -> bool {
        let bit = 1 << (number % 64);
        let waits = self.0.load(SeqCst) & bit != 0 && self.0.fetch_and(!bit, SeqCst) & bit != 0;
        if waits {
            group.unpark(number % 64);
        }
        waits
    }

    /// Whether peer `number` waits, as far as one knows.
    pub fn has(&self, number: u8) -> bool {
        self.0.load(SeqCst) & 1 << (number % 64) != 0
    }

    /// The caller waits from here on.
    pub(crate) fn enter<G: Park + ?Sized>(&self, group: &G) {
        self.0.fetch_or(group.me().bit(), SeqCst);
    }

    /// The caller no longer waits. Whether somebody had woken it, or is about to.
    pub(crate) fn leave<G: Park + ?Sized>(&self, group: &G) -> bool {
        let bit = group.me().bit();
        self.0.fetch_and(!bit, SeqCst) & bit == 0
    }

    /// Spins, then sleeps, until `look` finds something or `deadline` passes.
    pub(crate) fn wait<G: Park + ?Sized, R>(
        &self,
        group: &G,
        deadline: Option<u64>,
        mut look: impl FnMut(Look) -> Option<R>,
    ) -> Waited<R> {
        let found = spin(group, deadline, &mut look);
        if found.is_some() {
            return Waited { found, woken: false };
        }
        loop {
            self.enter(group);
            let found = look(Look::Thorough);
            if found.is_some() || passed(group, deadline) {
                return Waited { found, woken: self.leave(group) };
            }
            nap(group, deadline);
        }
    }
}
