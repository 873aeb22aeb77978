//! Revocations: a peer must lose a mapping before a request is answered.

use super::state::{Id, Revocation, State};
use kyozon_abi::unikernel::*;
use kyozon_join::message::{FromKeeper, ToKeeper};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// Maximum time in which a tender unmaps a region. A slower one is killed.
const UNMAP_TIMEOUT: Duration = Duration::from_secs(2);

impl State {
    /// Whether the peer is about to lose the region.
    pub fn is_revoking(&self, peer: usize, number: u64) -> bool {
        self.revocations.iter().any(|r| r.peer == peer && r.number as u64 == number)
    }

    /// Makes a peer lose a region that it has mapped. The request is answered once all such revocations of it have
    /// ended.
    pub fn revoke_mapping(&mut self, requester: Id, id: u64, peer: usize, number: usize) {
        let Some(from) = self.owner_of(peer) else { return };
        self.last_number += 1;
        let (serial, end) = (self.last_number, Instant::now() + UNMAP_TIMEOUT);
        self.revocations.push(Revocation { requester, id, from, serial, peer, number, end });
        match self.member(from) {
            Some(member) if member.can_unmap() => {
                self.send(from, &FromKeeper::Take { serial, peer, number: number as u64 }, &[]);
            }
            // Its backend cannot unmap a region, so the peer ends. A host program has no tender that would end it.
            Some(member) if member.is_host() => self.signal(from, Signal::KILL),
            _ => self.send(from, &FromKeeper::Stop { peer: Some(peer) }, &[]),
        }
    }

    /// Marks the region as unmapped, then handles the requests that waited for this.
    pub fn finish_revocation(&mut self, revocation: Revocation) {
        let Revocation { requester, id, peer, number, .. } = revocation;
        if self.regions.set_unmapped(number, peer, PEER_DEAD) {
            self.ring_others(peer);
        }
        if !self.revocations.iter().any(|other| (other.requester, other.id) == (requester, id)) {
            self.answer(requester, id, Ok(0), None);
        }
        let waited = |(_, message): &(Id, ToKeeper)| match message {
            ToKeeper::Map { peer: p, number: n, .. } => *p == peer && *n == number as u64,
            _ => false,
        };
        let (ready, deferred) = std::mem::take(&mut self.deferred).into_iter().partition(waited);
        self.deferred = deferred;
        for (requester, message) in ready {
            self.handle(requester, message);
        }
    }

    /// Time until the next tender is late with a revocation; `None` if there is no revocation.
    pub fn deadline(&self) -> Option<Duration> {
        let first = self.revocations.iter().map(|revocation| revocation.end).min()?;
        Some(first.saturating_duration_since(Instant::now()))
    }

    /// Kills tenders that did not unmap a region in time. Their sockets then hang up.
    pub fn expire(&mut self) {
        let now = Instant::now();
        for i in 0..self.revocations.len() {
            if self.revocations[i].end <= now {
                self.signal(self.revocations[i].from, Signal::KILL);
                self.revocations[i].end = now + UNMAP_TIMEOUT;
            }
        }
    }
}
