//! The peers of this run. Wakes, interrupts and ends them.

use crate::clock::Clock;
use crate::lives::Lives;
use crate::peer::Peer;
use crate::signals::{poll_fd, timespec};
use crate::table::PeerTable;
use crate::tokens::Tokens;
use kyozon_abi::unikernel::*;
use rustix::event::poll;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

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
    pub fn new(first: usize, peers: Vec<Peer>, tokens: Tokens, lives: Lives) -> Self {
        Self {
            table: PeerTable::new(first, peers, tokens.room(), lives),
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

    /// Whether all peers must end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Whether a peer must end. True also for a number that no peer of this run has.
    pub fn must_end(&self, peer: usize) -> bool {
        self.is_stopped()
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
        let sleeper = self.table.get(peer);
        let ended = sleeper.as_ref().and_then(|sleeper| sleeper.kick.get()?.ended());
        let mut fds = [poll_fd(token), ended.as_ref().map_or_else(|| poll_fd(token), poll_fd)];
        let fds = &mut fds[..1 + usize::from(ended.is_some())];
        loop {
            if token.read().is_ok() {
                return false;
            }
            if deadline != NO_DEADLINE && self.clock.now() >= deadline {
                return true;
            }
            let time = timespec(self.clock.until(deadline));
            let woken = poll(fds, (deadline != NO_DEADLINE).then_some(&time));
            if woken.is_err() && self.must_end(peer) {
                return false;
            }
            // The next entry reports that another process has ended the guest.
            if fds.get(1).is_some_and(|fd| !fd.revents().is_empty()) {
                return false;
            }
        }
    }
}
