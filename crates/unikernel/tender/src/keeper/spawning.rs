//! Spawned peers: a run gets further numbers after it has joined.

use super::state::{Id, PeerEntry, State};
use crate::quota::peer_bytes;
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
        self.add_peer(
            peer,
            PeerEntry { connection: requester, family, memory, since: Instant::now() },
        );
        self.joined_numbers &= !(1 << peer);
        let losing: Vec<_> =
            (0..self.regions.len()).map(|number| self.is_revoking(parent, number as u64)).collect();
        let inherited = self.regions.inherit(parent, peer, |number| losing[number]);
        let regions = inherited.iter().map(|(number, rights)| self.region_info(*number, *rights));
        let regions = regions.collect();
        self.send(
            requester,
            &FromKeeper::Seat { id, peer, generation: self.generations[peer], regions },
            &[],
        );
        self.answer_rendezvous();
    }

    /// The lowest free number, if possible one whose latest peer did not join with its run, and the parent's family.
    /// `None` if there is no number, if the group or the family has reached a limit, or if the family ends.
    fn find_number(&mut self, requester: Id, parent: usize, memory: u64) -> Option<(usize, usize)> {
        let family = self.peers[parent]?.family;
        // A peer cannot join a family that is ending.
        if !self.are_family(parent, family) || self.is_ending(family, requester) {
            return None;
        }
        let here = self.peers.iter().flatten().count();
        let (count, spawned) = self.family_use(parent);
        let used = spawned + self.regions.paid_by(family).1;
        let quota = self.member(requester)?.quota;
        let bytes = used.saturating_add(memory).saturating_add(peer_bytes(0));
        if here >= self.peers_limit || count >= quota.peers || bytes > quota.bytes {
            return None;
        }
        let peers = &self.peers;
        let free =
            |excluded: u64| move |peer: &usize| peers[*peer].is_none() && excluded >> peer & 1 == 0;
        let peer =
            (0..MAX_PEERS).find(free(self.joined_numbers)).or_else(|| (0..MAX_PEERS).find(free(0)));
        Some((peer?, family))
    }

    /// Whether two peers exist and belong to the same family.
    pub(super) fn are_family(&self, one: usize, other: usize) -> bool {
        self.family(one).is_some() && self.family(one) == self.family(other)
    }
}

#[cfg(test)]
mod tests;
