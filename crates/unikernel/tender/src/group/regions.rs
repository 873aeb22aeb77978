//! Regions of a group that no other run can join, and the guests' calls about them.
//!
//! One lock guards the list of regions, their rights and the backends' mappings. So a revoked right has no mapping any
//! more when the call that revoked it returns. No thread waits while it holds the lock, except in a rendezvous, which
//! releases it while it waits.

use super::Answer;
use crate::error::Result;
use crate::peer::Peer;
use crate::peers::Peers;
use crate::quota::{peer_bytes, Quota};
use crate::region::ALL;
use crate::rules::{Regions, Roster};
use kyozon_abi::unikernel::*;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The regions of a group without a keeper. Its methods take the run's peers, as those of
/// [`Member`](crate::member::Member) do.
pub struct LocalRegions {
    /// Limits of each family.
    pub quota: Quota,
    regions: Mutex<Regions>,
    /// A peer has mapped a region, or has ended.
    changed: Condvar,
}

impl Default for LocalRegions {
    fn default() -> Self {
        Self { quota: Quota::NONE, regions: Mutex::default(), changed: Condvar::new() }
    }
}

impl Roster for Peers {
    fn family(&self, peer: usize) -> Option<(u64, usize)> {
        self.table.get(peer).map(|peer| (0, peer.family))
    }
}

impl LocalRegions {
    pub(super) fn lock(&self) -> MutexGuard<'_, Regions> {
        self.regions.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Wakes the threads in [`LocalRegions::rendezvous`], which then check their conditions.
    pub fn wake(&self) {
        drop(self.lock());
        self.changed.notify_all();
    }

    /// Adds a region of the group before the start; all peers map it.
    pub fn add(
        &self,
        peers: &Peers,
        name: &str,
        bytes: u64,
        address: Option<u64>,
        write: bool,
    ) -> Result<()> {
        let mut regions = self.lock();
        let files = peers.table.all().iter().any(|(_, peer)| peer.memory.has_file());
        let number = regions.add(name, bytes, address, files)?;
        let rights = if write { ALL } else { REGION_READ };
        for (to, peer) in peers.table.all() {
            peer.map(&regions[number].mapping(number, rights))?;
            regions.join(number, to, rights);
        }
        Ok(())
    }

    /// The regions that a peer has mapped, for its boot block.
    pub fn mapped_by(&self, peer: usize) -> Vec<SharedRegion> {
        let regions = self.lock();
        let mapped = regions.iter().enumerate().filter(|(_, r)| r.mapped[peer] != 0);
        mapped.map(|(number, r)| r.shared(number, r.mapped[peer])).collect()
    }

    /// Reserves a number, and returns it with its next generation, for a peer with `bytes` bytes of private memory that
    /// joins a family. `None` if there is no free number, or if the family has reached a limit.
    pub fn reserve(&self, peers: &Peers, family: usize, bytes: u64) -> Option<(usize, u32)> {
        let regions = self.lock();
        let (count, spawned) = peers.table.family_use(family);
        let used = spawned + regions.paid_by(family).1;
        if count >= self.quota.peers || used + peer_bytes(bytes) > self.quota.bytes {
            return None;
        }
        peers.table.reserve(family, bytes)
    }

    /// [`ASK_REGION_CREATE`].
    pub fn create(
        &self,
        peers: &Peers,
        peer: usize,
        name: &[u8],
        bytes: u64,
        address: Option<u64>,
    ) -> Answer {
        let caller = peers.get(peer)?;
        let (family, files) = (caller.family, caller.memory.has_file());
        let mut regions = self.lock();
        let used = peers.table.family_use(family).1;
        let payer = (peer, family);
        let number = regions.create(payer, (self.quota, used), name, bytes, address, files)?;
        Ok(number as u64)
    }

    /// [`ASK_REGION_OPEN`].
    pub fn open(&self, peer: usize, name: &[u8]) -> Result<SharedRegion, i64> {
        let regions = self.lock();
        let (number, rights) = regions.open(peer, name)?;
        Ok(regions[number].shared(number, rights))
    }

    /// [`ASK_REGION_MAP`].
    pub fn map(&self, peers: &Peers, peer: usize, number: u64, rights: u32) -> Answer {
        let mut regions = self.lock();
        let number = regions.may_map(peer, number, rights)?;
        if regions[number].mapped[peer] == rights {
            return Ok(0);
        }
        let caller = peers.get(peer)?;
        if caller.space.features() & FEATURE_REGIONS == 0 {
            return Err(ERROR_UNSUPPORTED);
        }
        unmap_from(peers, &regions, number, peer).map_err(|_| ERROR_FULL)?;
        if caller.map(&regions[number].mapping(number, rights)).is_err() {
            regions.set_unmapped(number, peer, PEER_DEAD);
            return Err(ERROR_FULL);
        }
        regions.set_mapped(number, peer, rights);
        self.changed.notify_all();
        Ok(0)
    }

    /// [`ASK_REGION_UNMAP`].
    pub fn unmap(&self, peers: &Peers, peer: usize, number: u64) -> Answer {
        let mut regions = self.lock();
        let number = regions.visible(number, peer)?;
        if regions[number].mapped[peer] == 0 {
            return Err(ERROR_NAME);
        }
        if peers.get(peer)?.space.features() & FEATURE_REGIONS == 0 {
            return Err(ERROR_UNSUPPORTED);
        }
        unmap_from(peers, &regions, number, peer).map_err(|_| ERROR_FULL)?;
        regions.set_unmapped(number, peer, PEER_LEFT);
        Ok(0)
    }

    /// [`ASK_REGION_GRANT`], and with rights 0 [`ASK_REGION_REVOKE`].
    pub fn grant(&self, peers: &Peers, peer: usize, number: u64, to: u64, rights: u32) -> Answer {
        let mut regions = self.lock();
        let (number, losers) = regions.grant(peers, peer, number, to, rights)?;
        for loser in &losers {
            unmap_from(peers, &regions, number, *loser).map_err(|_| ERROR_FULL)?;
            regions.set_unmapped(number, *loser, PEER_DEAD);
        }
        drop(regions);
        for loser in losers {
            peers.ring_others(loser);
            self.changed.notify_all();
        }
        Ok(0)
    }

    /// [`ASK_RENDEZVOUS`].
    pub fn rendezvous(
        &self,
        peers: &Peers,
        peer: usize,
        number: u64,
        count: u64,
        deadline: u64,
    ) -> Answer {
        if count > peers.table.limit() as u64 {
            return Err(ERROR_ARGUMENT);
        }
        let mut regions = self.lock();
        loop {
            let came = regions.arrived(regions.visible(number, peer)?);
            if came >= count || peers.must_end(peer) {
                return Ok(came);
            }
            if deadline != NO_DEADLINE && peers.clock.now() >= deadline {
                return Err(ERROR_TIMEOUT);
            }
            // At most an hour at a time: a condition variable adds the duration to the present time, which may
            // overflow.
            let left = peers.clock.until(deadline).min(Duration::from_secs(3600));
            let until = Instant::now() + left;
            let wait = until.saturating_duration_since(Instant::now());
            regions =
                self.changed.wait_timeout(regions, wait).map_or_else(|e| e.into_inner().0, |r| r.0);
        }
    }

    /// Removes a peer from all regions; their headers show `state`.
    pub fn remove(&self, peers: &Peers, peer: usize, state: u32) {
        let initial = peers.table.get(peer).is_some_and(|there| there.family == peer);
        self.lock().remove(peer, state, initial);
    }

    /// Maps into a new peer, before its start, the regions that its parent has mapped.
    pub fn inherit(&self, parent: usize, number: usize, peer: &Arc<Peer>) -> Result<()> {
        let mut regions = self.lock();
        for (region, rights) in regions.inherit(parent, number, |_| false) {
            peer.map(&regions[region].mapping(region, rights))?;
        }
        Ok(())
    }
}

/// Unmaps a region from a peer; does nothing if the peer is gone, or has not mapped the region.
fn unmap_from(peers: &Peers, regions: &Regions, number: usize, from: usize) -> Result<()> {
    let (region, peer) = (&regions[number], peers.table.get(from));
    match peer.filter(|_| region.mapped[from] != 0) {
        Some(peer) => peer.unmap(&region.mapping(number, region.mapped[from])),
        None => Ok(()),
    }
}
