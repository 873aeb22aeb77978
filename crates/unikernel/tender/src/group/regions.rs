//! Regions of a group that no other run can join, and the guests' calls about them.
//!
//! One lock guards the list of regions, their rights and the backends' mappings. So a revoked right has no mapping any
//! more when the call that revoked it returns. No thread waits while it holds the lock, except in a rendezvous, which
//! releases it while it waits.

use super::Answer;
use crate::error::Result;
use crate::peer::Peer;
use crate::peers::Peers;
use crate::region::{self, Region, ALL};
use kyozon_abi::unikernel::*;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The regions of a group without a keeper. Its methods take the run's peers, as those of
/// [`Member`](crate::member::Member) do.
pub struct LocalRegions {
    /// Maximum bytes of all guests and regions.
    pub limit: u64,
    regions: Mutex<Vec<Region>>,
    /// A peer has mapped a region, or has ended.
    changed: Condvar,
}

impl Default for LocalRegions {
    fn default() -> Self {
        Self { limit: u64::MAX, regions: Mutex::default(), changed: Condvar::new() }
    }
}

impl LocalRegions {
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Region>> {
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
        let address = region::check(&regions, name, bytes, address)?;
        regions.push(Region::new(name, address, bytes, None)?);
        let number = regions.len() - 1;
        let region = &mut regions[number];
        let rights = if write { ALL } else { REGION_READ };
        region.granted = [rights; MAX_PEERS];
        for (to, peer) in peers.table.all() {
            map_into(region, number, to, &peer, rights)?;
            region.set_state(to, PEER_PRESENT);
        }
        Ok(())
    }

    /// The regions that a peer has mapped, for its boot block.
    pub fn mapped_by(&self, peer: usize) -> Vec<SharedRegion> {
        let regions = self.lock();
        let mapped = regions.iter().enumerate().filter(|(_, r)| r.mapped[peer] != 0);
        mapped.map(|(number, r)| r.shared(number, r.mapped[peer])).collect()
    }

    /// Bytes that a family may still allocate for regions: in all no more than it has private memory.
    fn budget(&self, peers: &Peers, regions: &[Region], peer: &Peer) -> u64 {
        let own = regions.iter().filter(|r| r.payer == Some(peer.family)).map(|r| r.bytes).sum();
        peer.memory.origin.bytes.saturating_sub(own).min(self.unused(peers, regions))
    }

    /// Bytes of [`LocalRegions::limit`] that no region and no guest uses; a guest in the making counts.
    fn unused(&self, peers: &Peers, regions: &[Region]) -> u64 {
        let used = regions.iter().map(|r| r.bytes).fold(peers.table.bytes(), u64::saturating_add);
        self.limit.saturating_sub(used)
    }

    /// Reserves a number, and returns it with its next generation, for a peer with `bytes` bytes of private memory.
    /// `None` if there is no free number or not enough memory.
    pub fn reserve(&self, peers: &Peers, bytes: u64) -> Option<(usize, u32)> {
        let regions = self.lock();
        if bytes > self.unused(peers, &regions) {
            return None;
        }
        peers.table.reserve(bytes)
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
        let name = region::name(name).ok_or(ERROR_ARGUMENT)?;
        let mut regions = self.lock();
        if regions.iter().any(|r| r.name == name) {
            return Err(ERROR_EXISTS);
        }
        let address = region::place(&regions, bytes, address)?;
        if regions.len() == MAX_REGIONS || bytes > self.budget(peers, &regions, &caller) {
            return Err(ERROR_FULL);
        }
        let mut region = Region::new(name, address, bytes, Some(peer)).map_err(|_| ERROR_FULL)?;
        region.payer = Some(caller.family);
        regions.push(region);
        Ok(regions.len() as u64 - 1)
    }

    /// [`ASK_REGION_OPEN`].
    pub fn open(&self, peer: usize, name: &[u8]) -> Result<SharedRegion, i64> {
        let regions = self.lock();
        let matches = |r: &&Region| r.name.as_bytes() == name && r.granted[peer] != 0;
        let number = regions.iter().position(|r| matches(&r)).ok_or(ERROR_NAME)?;
        Ok(regions[number].shared(number, regions[number].granted[peer]))
    }

    /// [`ASK_REGION_MAP`].
    pub fn map(&self, peers: &Peers, peer: usize, number: u64, rights: u32) -> Answer {
        let mut regions = self.lock();
        let (number, region) = visible(&mut regions, number, peer)?;
        if rights & !region.granted[peer] != 0 {
            return Err(ERROR_RIGHT);
        }
        if region.mapped[peer] == rights {
            return Ok(0);
        }
        let caller = peers.get(peer)?;
        if caller.space.features() & FEATURE_REGIONS == 0 {
            return Err(ERROR_UNSUPPORTED);
        }
        // A mapping with other rights is no new arrival: readers of the header see the same generation.
        let arrives = region.mapped[peer] == 0;
        if !arrives {
            unmap_from(peers, region, number, peer).map_err(|_| ERROR_FULL)?;
        }
        map_into(region, number, peer, &caller, rights).map_err(|_| ERROR_FULL)?;
        if arrives {
            region.set_state(peer, PEER_PRESENT);
        }
        self.changed.notify_all();
        Ok(0)
    }

    /// [`ASK_REGION_UNMAP`].
    pub fn unmap(&self, peers: &Peers, peer: usize, number: u64) -> Answer {
        let mut regions = self.lock();
        let (number, region) = visible(&mut regions, number, peer)?;
        if region.mapped[peer] == 0 {
            return Err(ERROR_NAME);
        }
        if peers.get(peer)?.space.features() & FEATURE_REGIONS == 0 {
            return Err(ERROR_UNSUPPORTED);
        }
        unmap_from(peers, region, number, peer).map_err(|_| ERROR_FULL)?;
        region.set_state(peer, PEER_LEFT);
        Ok(0)
    }

    /// [`ASK_REGION_GRANT`], and with rights 0 [`ASK_REGION_REVOKE`].
    pub fn grant(&self, peers: &Peers, peer: usize, number: u64, to: u64, rights: u32) -> Answer {
        let mut regions = self.lock();
        let (number, region) = visible(&mut regions, number, peer)?;
        let to =
            usize::try_from(to).ok().filter(|to| *to < peers.table.limit()).ok_or(ERROR_NAME)?;
        if rights != 0 {
            peers.get(to)?;
        }
        if region.owner != Some(peer) {
            return Err(ERROR_RIGHT);
        }
        region.granted[to] = rights;
        // A family is one program: if one of its peers loses a right, all of them do.
        let mut restricted = vec![to];
        if let Some(family) = peers.table.get(to).map(|peer| peer.family) {
            let all = peers.table.all();
            let owners = all.iter().any(|(n, other)| *n == peer && other.family == family);
            let others = all.iter().filter(|(n, other)| *n != to && other.family == family);
            restricted.extend(others.filter(|_| !owners).map(|(n, _)| *n));
        }
        let mut unmapped = Vec::new();
        for number_of_peer in restricted {
            region.granted[number_of_peer] &= rights;
            if region.mapped[number_of_peer] & !rights != 0 {
                unmap_from(peers, region, number, number_of_peer).map_err(|_| ERROR_FULL)?;
                region.set_state(number_of_peer, PEER_DEAD);
                unmapped.push(number_of_peer);
            }
        }
        drop(regions);
        for peer in unmapped {
            peers.ring_others(peer);
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
            let (_, region) = visible(&mut regions, number, peer)?;
            let came = u64::from(region.arrived.count_ones());
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

    /// Removes a peer from all regions; their headers show `state`. The regions that it created keep no owner.
    pub fn remove(&self, peer: usize, state: u32) {
        for region in self.lock().iter_mut() {
            if region.mapped[peer] != 0 {
                region.mapped[peer] = 0;
                region.set_state(peer, state);
            }
            if region.owner == Some(peer) {
                region.owner = Some(region::OWNER_GONE);
            }
        }
    }

    /// Maps into a new peer, before its start, the regions that its parent has mapped.
    pub fn inherit(&self, parent: usize, number: usize, peer: &Arc<Peer>) -> Result<()> {
        for (i, region) in self.lock().iter_mut().enumerate() {
            let rights = region.mapped[parent];
            region.granted[number] = rights;
            if rights != 0 {
                map_into(region, i, number, peer, rights)?;
                region.set_state(number, PEER_PRESENT);
            }
        }
        Ok(())
    }
}

/// Index and entry of a region that `peer` owns or was granted; `ERROR_NAME` for any other number.
fn visible(regions: &mut [Region], number: u64, peer: usize) -> Result<(usize, &mut Region), i64> {
    let number = usize::try_from(number).map_err(|_| ERROR_NAME)?;
    let region = regions.get_mut(number).ok_or(ERROR_NAME)?;
    let visible = region.granted[peer] != 0 || region.owner == Some(peer);
    if visible {
        Ok((number, region))
    } else {
        Err(ERROR_NAME)
    }
}

/// Maps a region into the peer with number `to`.
fn map_into(region: &mut Region, number: usize, to: usize, peer: &Peer, rights: u32) -> Result<()> {
    peer.map(&region.mapping(number, rights))?;
    region.mapped[to] = rights;
    region.arrived |= 1 << to;
    Ok(())
}

/// Unmaps a region from a peer; does nothing if the peer is gone.
fn unmap_from(peers: &Peers, region: &mut Region, number: usize, from: usize) -> Result<()> {
    let Some(peer) = peers.table.get(from) else { return Ok(()) };
    let mapping = region.mapping(number, region.mapped[from]);
    region.mapped[from] = 0;
    peer.unmap(&mapping)
}
