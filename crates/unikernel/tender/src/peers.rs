//! The peers of this run. Wakes, interrupts and ends them.

use crate::clock::Clock;
use crate::peer::Peer;
use crate::signals::{poll_fd, timespec};
use crate::table::PeerTable;
use crate::tokens::Tokens;
use kyozon_abi::unikernel::*;
use rustix::event::poll;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Maximum sleep of a guest that another process can end: the tender notices that end only when it enters the guest.
const LONG_SLEEP: Duration = Duration::from_secs(1);

/// The peers of this run.
pub struct Peers {
    /// The peers by number.
    pub table: PeerTable,
    /// Number of the first peer of this run.
    pub first: usize,
    /// Tokens of all peers that the group can have, including those of other runs.
    pub tokens: Tokens,
    /// The group's clock. Before the start it is the system's clock.
    pub clock: Clock,
    stopped: AtomicBool,
}

impl Peers {
    /// The peers of the start, numbered from `first` on.
    pub fn new(first: usize, peers: Vec<Peer>, tokens: Tokens) -> Self {
        Self {
            table: PeerTable::new(first, peers, tokens.room()),
            first,
            tokens,
            clock: Clock::default(),
            stopped: AtomicBool::new(false),
        }
    }

    /// Gives a peer its token.
    pub fn ring(&self, peer: usize) {
        if let Some(token) = self.tokens.get(peer) {
            // The write fails only if the counter is full. Then the peer has a token.
            let _ = token.write(1);
        }
    }

    /// Rings all peers of this run but one.
    pub fn ring_others(&self, peer: usize) {
        let others = self.table.all().into_iter().filter(|(other, _)| *other != peer);
        others.for_each(|(other, _)| self.ring(other));
    }

    /// Ends all peers: processors return and sleepers wake.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        (0..self.tokens.room()).for_each(|number| self.ring(number));
        for (number, peer) in self.table.all() {
            self.interrupt(number, &peer);
        }
    }

    /// Ends one of this run's peers, or the peer that is being made for this number; does nothing if there is none.
    pub fn end(&self, number: usize) {
        self.table.end_reserved(number);
        let there = self.table.get(number).map(|peer| (number, peer));
        self.end_all(there.as_slice());
    }

    /// Makes the peer's processor return from the guest or from sleep.
    fn interrupt(&self, number: usize, peer: &Peer) {
        self.ring(number);
        if let Some(kick) = peer.kick.get() {
            kick.kick();
        }
    }

    /// Ends these peers.
    pub fn end_all(&self, peers: &[(usize, Arc<Peer>)]) {
        for (number, peer) in peers {
            peer.must_end.store(true, Ordering::SeqCst);
            self.interrupt(*number, peer);
        }
    }

    /// Whether a peer must end. True also for a number that no peer of this run has.
    pub fn must_end(&self, peer: usize) -> bool {
        self.stopped.load(Ordering::SeqCst)
            || self.table.get(peer).is_none_or(|peer| peer.must_end.load(Ordering::SeqCst))
    }

    /// The peer of this run with this number.
    ///
    /// # Errors
    ///
    /// `ERROR_NAME`: there is none.
    pub fn get(&self, number: usize) -> Result<Arc<Peer>, i64> {
        self.table.get(number).ok_or(ERROR_NAME)
    }

    /// Sleeps until the peer has its token, or until the deadline, in nanoseconds of the group's clock. Returns whether
    /// the deadline has passed.
    pub fn park(&self, peer: usize, deadline: u64) -> bool {
        let Some(token) = self.tokens.get(peer) else { return false };
        let can_be_killed = self.table.get(peer).is_some_and(|peer| peer.space.can_be_killed());
        loop {
            if token.read().is_ok() {
                return false;
            }
            if deadline != NO_DEADLINE && self.clock.now() >= deadline {
                return true;
            }
            let left = self.clock.until(deadline);
            let left = if can_be_killed { left.min(LONG_SLEEP) } else { left };
            let forever = deadline == NO_DEADLINE && !can_be_killed;
            let time = timespec(left);
            let woken = poll(&mut [poll_fd(token)], (!forever).then_some(&time));
            if woken.is_err() && self.must_end(peer) {
                return false;
            }
            // The guest may have been ended by another process. If it was not, it calls and sleeps again.
            if woken == Ok(0) && left == LONG_SLEEP {
                return false;
            }
        }
    }
}
