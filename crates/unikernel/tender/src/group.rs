//! The peers of this run as a group: their calls to each other, their arrivals and their ends.
//!
//! If other runs can join, the group's keeper holds the regions, and calls go to it through [`Member`]. Otherwise
//! [`LocalRegions`] holds them.

mod regions;

use crate::bond::Parting;
use crate::console;
use crate::error::Result;
use crate::member::Member;
use crate::peer::Peer;
use crate::peers::Peers;
use crate::pins::Pins;
use crate::region;
use kyozon_abi::unikernel::*;
use kyozon_join::message::ToKeeper;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

pub use regions::LocalRegions;

/// The answer to a call: a number, or `ERROR_*`.
pub type Answer = Result<u64, i64>;

/// Makes peers that join a family while it runs.
pub trait Spawn: Send + Sync {
    /// [`ASK_SPAWN`].
    fn spawn(
        self: Arc<Self>,
        parent: usize,
        entry: u64,
        argument: u64,
        stack: Area,
        bound: u64,
    ) -> Answer;

    /// Wakes the threads in [`Spawn::wait_until`], because a peer is gone.
    fn notify(&self);

    /// Waits until a condition holds. Each change of the condition must be followed by [`Spawn::notify`].
    fn wait_until(&self, holds: &dyn Fn() -> bool);

    /// Waits until all spawned peers are gone.
    fn wait_all(&self);
}

/// The peers of this run, and the regions that they share.
pub struct Group {
    /// The peers of this run.
    pub peers: Peers,
    /// Makes further peers; not set if there can be none.
    pub spawner: OnceLock<Arc<dyn Spawn>>,
    /// The connection to the group's keeper, if other runs can join. The keeper then has all regions.
    pub member: Option<Member>,
    /// The regions, if there is no keeper.
    pub local: LocalRegions,
    /// CPUs on which guests run.
    pub pins: Pins,
}

impl Group {
    /// A group of these peers, without regions.
    pub fn new(peers: Peers) -> Self {
        Self {
            peers,
            spawner: OnceLock::new(),
            member: None,
            local: LocalRegions::default(),
            pins: Pins::default(),
        }
    }

    /// Ends all peers, including those that wait for a region or for the keeper.
    pub fn stop(&self) {
        self.peers.stop();
        self.local.wake();
        if let Some(member) = &self.member {
            member.wake();
        }
    }

    /// Ends these peers, including those that wait for a region.
    fn end_peers(&self, peers: &[(usize, Arc<Peer>)]) {
        self.peers.end_all(peers);
        if !peers.is_empty() {
            self.local.wake();
        }
    }

    /// The regions that a peer has mapped, for its boot block.
    pub fn mapped_by(&self, peer: usize) -> Vec<SharedRegion> {
        match &self.member {
            Some(member) => member.mapped_by(peer),
            None => self.local.mapped_by(peer),
        }
    }

    /// Reserves a number, and returns it with its next generation, for a peer that `parent` spawns with `bytes` bytes
    /// of private memory. The reservation ends when the peer takes the number, or with [`Group::release`]. `None` if
    /// there is no free number, or if the family has reached a limit.
    pub fn reserve(&self, parent: usize, bytes: u64) -> Option<(usize, u32)> {
        let Some(member) = &self.member else {
            let family = self.peers.table.get(parent)?.family;
            return self.local.reserve(&self.peers, family, bytes);
        };
        member.reserve(&self.peers, parent, bytes).ok()
    }

    /// [`ASK_REGION_CREATE`].
    pub fn create(&self, peer: usize, name: &[u8], bytes: u64, address: Option<u64>) -> Answer {
        if self.peers.get(peer)?.space.features() & FEATURE_REGIONS == 0 {
            return Err(ERROR_UNSUPPORTED);
        }
        match &self.member {
            Some(member) => member.create(&self.peers, peer, name, bytes, address),
            None => self.local.create(&self.peers, peer, name, bytes, address),
        }
    }

    /// [`ASK_REGION_OPEN`].
    pub fn open(&self, peer: usize, name: &[u8]) -> Result<SharedRegion, i64> {
        match &self.member {
            Some(member) => member.open(&self.peers, peer, name),
            None => self.local.open(peer, name),
        }
    }

    /// [`ASK_REGION_MAP`].
    pub fn map(&self, peer: usize, number: u64, rights: u64) -> Answer {
        let rights = region::rights(rights).ok_or(ERROR_ARGUMENT)?;
        match &self.member {
            Some(member) => member.map(&self.peers, peer, number, rights),
            None => self.local.map(&self.peers, peer, number, rights),
        }
    }

    /// [`ASK_REGION_UNMAP`].
    pub fn unmap(&self, peer: usize, number: u64) -> Answer {
        match &self.member {
            Some(member) => member.unmap(&self.peers, peer, number),
            None => self.local.unmap(&self.peers, peer, number),
        }
    }

    /// [`ASK_REGION_GRANT`], and with rights 0 [`ASK_REGION_REVOKE`].
    pub fn grant(&self, peer: usize, number: u64, to: u64, rights: u32) -> Answer {
        match &self.member {
            Some(member) => member.grant(&self.peers, peer, number, to, rights),
            None => self.local.grant(&self.peers, peer, number, to, rights),
        }
    }

    /// [`ASK_RENDEZVOUS`].
    pub fn rendezvous(&self, peer: usize, number: u64, count: u64, deadline: u64) -> Answer {
        match &self.member {
            Some(member) => member.rendezvous(&self.peers, peer, number, count, deadline),
            None => self.local.rendezvous(&self.peers, peer, number, count, deadline),
        }
    }

    /// Removes a peer that has ended, and ends the peers that it takes with it. All region headers show `state`, and
    /// all other peers are rung. The peer's guest must not run again.
    pub fn remove(&self, peer: usize, state: u32, parting: Parting) {
        self.end_owner(peer, parting);
        self.end_bound(peer);
        match &self.member {
            Some(member) => member.forget(peer),
            None => self.local.remove(&self.peers, peer, state),
        }
        let family = self.peers.table.remove(peer, state, || {
            // The keeper writes the headers, and rings the peers of other runs. It must know that the number is free
            // before any peer sees this one gone, and so asks the keeper for a number.
            if let Some(member) = &self.member {
                member.send(&ToKeeper::Gone { peer, state });
            }
        });
        self.end_peers(&family);
        if let Some(spawner) = self.spawner.get() {
            spawner.notify();
        }
        self.peers.ring_others(peer);
        self.local.wake();
    }

    /// Ends the reservation of a number whose peer could not be made.
    pub fn release(&self, number: usize) {
        let Some(member) = &self.member else {
            self.local.remove(&self.peers, number, PEER_DEAD);
            return self.peers.table.release(number);
        };
        member.forget(number);
        self.peers.table.release(number);
        member.send(&ToKeeper::Gone { peer: number, state: PEER_DEAD });
    }

    /// Maps into a new peer, before its start, the regions that its parent has mapped.
    pub fn inherit(&self, parent: usize, number: usize, peer: &Arc<Peer>) -> Result<()> {
        match &self.member {
            Some(member) => member.inherit(&self.peers, number, peer),
            None => self.local.inherit(parent, number, peer),
        }
    }

    /// [`ASK_SPAWN`].
    pub fn spawn(&self, peer: usize, entry: u64, argument: u64, stack: Area, bound: u64) -> Answer {
        self.spawner
            .get()
            .ok_or(ERROR_UNSUPPORTED)?
            .clone()
            .spawn(peer, entry, argument, stack, bound)
    }

    /// Begins to end the owner of a bound peer, if the peer left memory broken that the owner lent it. No thread of the
    /// family sees the peer gone before.
    fn end_owner(&self, number: usize, parting: Parting) {
        if self.peers.is_stopped() {
            return;
        }
        let Some(peer) = self.peers.table.get(number) else { return };
        // It does not run any more. The peers that are bound to it end with it, and need not end it.
        peer.must_end.store(true, Ordering::SeqCst);
        let Some((owner, generation)) = peer.bound else { return };
        let there = self.peers.table.get(owner).filter(|owner| {
            owner.generation == generation && !owner.must_end.load(Ordering::SeqCst)
        });
        if let (Some(there), Some(status)) = (there, peer.status_for_owner(parting)) {
            there.bond.set_ended_by(status);
            self.end_peers(&[(owner, there)]);
            if let Some(member) = &self.member {
                member.wake();
            }
            if !matches!(parting, Parting::Exited(_)) {
                let what = "which died with memory that it borrowed";
                console::message(&format!(
                    "kyozon: guest {owner} ends with guest {number}, {what}"
                ));
            }
        }
    }

    /// Ends the peers that are bound to this one, and waits for their ends, before this one is reported gone.
    fn end_bound(&self, peer: usize) {
        let Some(spawner) = self.spawner.get() else { return };
        let Some(generation) = self.peers.table.get(peer).map(|peer| peer.generation) else {
            return;
        };
        // A bound peer that ends may have been making another one: look again after each end.
        spawner.wait_until(&|| {
            let mut bound = self.peers.table.all();
            bound.retain(|(_, other)| other.bound == Some((peer, generation)));
            self.end_peers(&bound);
            bound.is_empty()
        });
    }

    /// [`ASK_END`].
    pub fn end(&self, peer: usize, number: u64, generation: u64) -> Answer {
        let number = usize::try_from(number).map_err(|_| ERROR_NAME)?;
        let latest = self.peers.table.life(number).generation;
        if generation == 0 || generation > u64::from(latest) {
            return Err(ERROR_NAME);
        }
        let target = self.peers.table.get(number).filter(|p| u64::from(p.generation) == generation);
        let Some(target) = target else { return Ok(0) };
        if target.family == number || target.family != self.peers.get(peer)?.family {
            return Err(ERROR_RIGHT);
        }
        target.bond.release();
        self.end_peers(&[(number, target)]);
        Ok(0)
    }
}

#[cfg(test)]
pub(crate) mod tests;
