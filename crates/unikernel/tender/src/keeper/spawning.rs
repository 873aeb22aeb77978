//! Spawned peers: a run gets further numbers after it has joined.

use super::state::{Id, PeerEntry, State};
use kyozon_abi::unikernel::*;
use kyozon_join::message::FromKeeper;
use std::time::Instant;

impl State {
    /// `ASK_SPAWN`: gives the requester a number for one more peer of `parent`'s family, and the regions that `parent`
    /// has mapped. The number counts as a peer from then on; if the tender cannot make the peer, it reports it gone.
    pub(super) fn spawn(&mut self, requester: Id, id: u64, parent: usize, memory: u64) {
        let Some((peer, family)) = self.find_number(requester, parent, memory) else {
            return self.answer(requester, id, Err(ERROR_FULL), None);
        };
        self.peers[peer] =
            Some(PeerEntry { connection: requester, family, memory, since: Instant::now() });
        self.used |= 1 << peer;
        self.joined_numbers &= !(1 << peer);
        // Removes a token that was for the former peer of this number.
        let _ = self.tokens[peer].read();
        let mut regions = Vec::new();
        for number in 0..self.regions.len() {
            // A region that the parent is about to lose is not inherited.
            let revoking = self.is_revoking(parent, number as u64);
            let region = &mut self.regions[number];
            let rights = if revoking { 0 } else { region.mapped[parent] };
            region.granted[peer] = rights;
            if rights != 0 {
                region.mapped[peer] = rights;
                region.arrived |= 1 << peer;
                region.set_state(peer, PEER_PRESENT);
                regions.push(self.region_info(number, rights));
            }
        }
        self.send(requester, &FromKeeper::Seat { id, peer, regions }, &[]);
        self.answer_rendezvous();
    }

    /// The lowest free number, if possible one whose latest peer did not join with its run, and the parent's family.
    /// `None` if there is no number, if a limit is reached, or if the family ends.
    fn find_number(&self, requester: Id, parent: usize, memory: u64) -> Option<(usize, usize)> {
        let family = self.peers[parent]?.family;
        // A peer cannot join a family that is ending.
        if !self.are_family(parent, family) || self.is_ending(family, requester) {
            return None;
        }
        let here = self.peers.iter().flatten().count();
        let limit = self.memory_limit.unwrap_or(u64::MAX);
        if here >= self.peers_limit || self.memory().saturating_add(memory) > limit {
            return None;
        }
        let free = |excluded: u64| {
            move |peer: &usize| self.peers[*peer].is_none() && excluded >> peer & 1 == 0
        };
        let peer =
            (0..MAX_PEERS).find(free(self.joined_numbers)).or_else(|| (0..MAX_PEERS).find(free(0)));
        Some((peer?, family))
    }

    /// Whether two peers exist and belong to the same family.
    pub(super) fn are_family(&self, one: usize, other: usize) -> bool {
        let family = |peer: usize| self.peers[peer].map(|entry| (entry.connection, entry.family));
        family(one).is_some() && family(one) == family(other)
    }

    /// The other peers of a peer's family.
    pub(super) fn family_of(&self, peer: usize) -> Vec<usize> {
        (0..MAX_PEERS).filter(|other| *other != peer && self.are_family(peer, *other)).collect()
    }
}

#[cfg(test)]
mod tests;
