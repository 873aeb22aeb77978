//! Peers that are spawned: numbers that a run gets after it joined.

use super::state::{Id, PeerEntry, State};
use kyozon_abi::unikernel::*;
use kyozon_join::message::FromKeeper;
use std::time::Instant;

impl State {
    /// `ASK_SPAWN`: a number for one more peer of a family, and what `parent` has mapped. It is a peer from then on;
    /// its tender says so when it does not become one.
    pub(super) fn spawn(&mut self, asker: Id, id: u64, parent: usize, memory: u64) {
        let Some((peer, family)) = self.room(asker, parent, memory) else {
            return self.answer(asker, id, Err(ERROR_FULL), None);
        };
        self.peers[peer] = Some(PeerEntry { of: asker, family, memory, since: Instant::now() });
        self.used |= 1 << peer;
        self.spent &= !(1 << peer);
        // A token of the peer that had the number before.
        let _ = self.tokens[peer].read();
        let mut regions = Vec::new();
        for number in 0..self.regions.len() {
            // What the parent is about to lose is not inherited.
            let lost = self.is_taking(parent, number as u64);
            let region = &mut self.regions[number];
            let rights = if lost { 0 } else { region.mapped[parent] };
            region.granted[peer] = rights;
            if rights != 0 {
                region.mapped[peer] = rights;
                region.arrived |= 1 << peer;
                region.set_state(peer, PEER_PRESENT);
                regions.push(self.known(number, rights));
            }
        }
        self.tell(asker, &FromKeeper::Seat { id, peer, regions }, &[]);
        self.met();
    }

    /// The lowest free number, and the family, where both are there and the limits allow it.
    fn room(&self, asker: Id, parent: usize, memory: u64) -> Option<(usize, usize)> {
        let family = self.peers[parent]?.family;
        // No peer joins a family that ends.
        if !self.are_family(parent, family) || self.is_ending(family, asker) {
            return None;
        }
        let here = self.peers.iter().flatten().count();
        let limit = self.memory_limit.unwrap_or(u64::MAX);
        if here >= self.peers_limit || self.memory().saturating_add(memory) > limit {
            return None;
        }
        let free =
            |also: u64| move |peer: &usize| self.peers[*peer].is_none() && also >> peer & 1 == 0;
        let peer = (0..MAX_PEERS).find(free(self.spent)).or_else(|| (0..MAX_PEERS).find(free(0)));
        Some((peer?, family))
    }

    /// Whether two peers that are here are of one family.
    pub(super) fn are_family(&self, one: usize, other: usize) -> bool {
        let family = |peer: usize| self.peers[peer].map(|seat| (seat.of, seat.family));
        family(one).is_some() && family(one) == family(other)
    }

    /// The others of a peer's family.
    pub(super) fn family_of(&self, peer: usize) -> Vec<usize> {
        (0..MAX_PEERS).filter(|other| *other != peer && self.are_family(peer, *other)).collect()
    }
}

#[cfg(test)]
mod tests;
