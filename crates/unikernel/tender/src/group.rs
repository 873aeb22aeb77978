//! Peers, their tokens, their regions.
//!
//! One lock guards all regions: of the list, the rights and what backends map, so that a right that was taken away is
//! away when the call that took it returns. Nothing waits while it holds the lock, but for a rendezvous, which gives
//! it up meanwhile.

use crate::error::Result;
use crate::member::Member;
use crate::peer::Peer;
use crate::peers::Peers;
use crate::pins::Pins;
use crate::region::{self, Region, ALL};
use kyozon_abi::unikernel::*;
use kyozon_join::message::ToKeeper;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// What a call about regions answers: a number, or `ERROR_*`.
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

    /// Wakes those that wait in [`Spawn::wait_until`]: a peer is gone.
    fn notify(&self);

    /// Waits until a condition holds that changes only before [`Spawn::notify`].
    fn wait_until(&self, holds: &dyn Fn() -> bool);

    /// Waits until all spawned peers are gone.
    fn wait(&self);
}

/// Peers that belong together.
pub struct Group {
    /// The peers of this run.
    pub peers: Peers,
    /// What makes more of them, if there can be more.
    pub spawner: OnceLock<Arc<dyn Spawn>>,
    /// If other runs can join: the connection to the group's keeper, which then has all regions.
    pub member: Option<Member>,
    /// Maximum bytes of all guests and regions, unless a keeper sees to that.
    pub limit: u64,
    /// CPUs that guests run on.
    pub pins: Pins,
    regions: Mutex<Vec<Region>>,
    changed: Condvar,
}

impl Group {
    /// Puts peers together, with no regions.
    pub fn new(peers: Peers) -> Self {
        Self {
            peers,
            spawner: OnceLock::new(),
            member: None,
            limit: u64::MAX,
            pins: Pins::default(),
            regions: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Ends all peers, also those that wait for a region or for the keeper.
    pub fn stop(&self) {
        self.peers.stop();
        drop(self.lock());
        self.changed.notify_all();
        if let Some(member) = &self.member {
            member.wake();
        }
    }

    /// Ends some peers.
    fn end_all(&self, peers: &[(usize, Arc<Peer>)]) {
        self.peers.end(peers);
        if !peers.is_empty() {
            drop(self.lock());
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Region>> {
        self.regions.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Before the start: a region of the group's, mapped by all peers.
    pub fn add(&self, name: &str, bytes: u64, at: Option<u64>, write: bool) -> Result<()> {
        let mut regions = self.lock();
        let address = region::check(&regions, name, bytes, at)?;
        regions.push(Region::new(name, address, bytes, None)?);
        let number = regions.len() - 1;
        let region = &mut regions[number];
        let rights = if write { ALL } else { REGION_READ };
        region.granted = [rights; MAX_PEERS];
        for (at, peer) in self.peers.table.all() {
            self.map_in(region, number, at, &peer, rights)?;
            region.set_state(at, PEER_PRESENT);
        }
        Ok(())
    }

    /// Regions that are mapped by a peer, for its boot block.
    pub fn mapped_by(&self, peer: usize) -> Vec<SharedRegion> {
        if let Some(member) = &self.member {
            return member.mapped_by(peer);
        }
        let regions = self.lock();
        let here = regions.iter().enumerate().filter(|(_, r)| r.mapped[peer] != 0);
        here.map(|(number, r)| r.shared(number, r.mapped[peer])).collect()
    }

    fn map_in(
        &self,
        region: &mut Region,
        number: usize,
        at: usize,
        peer: &Peer,
        rights: u32,
    ) -> Result<()> {
        peer.map(&region.mapping(number, rights))?;
        region.mapped[at] = rights;
        region.came |= 1 << at;
        Ok(())
    }

    /// Takes a mapping away.
    fn unmap_in(&self, region: &mut Region, number: usize, peer: usize) -> Result<()> {
        let Some(at) = self.peers.table.get(peer) else { return Ok(()) };
        let mapping = region.mapping(number, region.mapped[peer]);
        region.mapped[peer] = 0;
        at.unmap(&mapping)
    }

    /// A family's memory for regions of its own is as much as its memory.
    fn budget(&self, regions: &[Region], peer: &Peer) -> u64 {
        let own = regions.iter().filter(|r| r.payer == Some(peer.family)).map(|r| r.bytes).sum();
        peer.memory.origin.bytes.saturating_sub(own).min(self.left(regions))
    }

    /// What is left of [`Group::limit`] beside guests, also those that are being made, and regions.
    fn left(&self, regions: &[Region]) -> u64 {
        let all =
            regions.iter().map(|r| r.bytes).fold(self.peers.table.bytes(), u64::saturating_add);
        self.limit.saturating_sub(all)
    }

    /// The number and the generation for a peer of `parent`'s with so many bytes of its own, until it takes its seat or
    /// is forgotten.
    pub fn reserve(&self, parent: usize, bytes: u64) -> Option<(usize, u32)> {
        if let Some(member) = &self.member {
            let number = member.seat(&self.peers, parent, bytes).ok()?;
            return Some((number, self.peers.table.life(number).generation.wrapping_add(1)));
        }
        let regions = self.lock();
        if bytes > self.left(&regions) {
            return None;
        }
        self.peers.table.reserve(bytes)
    }

    /// [`ASK_REGION_CREATE`].
    pub fn create(&self, peer: usize, name: &[u8], bytes: u64, at: Option<u64>) -> Answer {
        let asks = self.peers.get(peer)?;
        if asks.space.features() & FEATURE_REGIONS == 0 {
            return Err(ERROR_UNSUPPORTED);
        }
        if let Some(member) = &self.member {
            return member.create(&self.peers, peer, name, bytes, at);
        }
        let name = region::name(name).ok_or(ERROR_ARGUMENT)?;
        let mut regions = self.lock();
        if regions.iter().any(|r| r.name == name) {
            return Err(ERROR_EXISTS);
        }
        let address = region::place(&regions, bytes, at)?;
        if regions.len() == MAX_REGIONS || bytes > self.budget(&regions, &asks) {
            return Err(ERROR_FULL);
        }
        let mut made = Region::new(name, address, bytes, Some(peer)).map_err(|_| ERROR_FULL)?;
        made.payer = Some(asks.family);
        regions.push(made);
        Ok(regions.len() as u64 - 1)
    }

    /// [`ASK_REGION_OPEN`].
    pub fn open(&self, peer: usize, name: &[u8]) -> Result<SharedRegion, i64> {
        if let Some(member) = &self.member {
            return member.open(&self.peers, peer, name);
        }
        let regions = self.lock();
        let named = |r: &&Region| r.name.as_bytes() == name && r.granted[peer] != 0;
        let number = regions.iter().position(|r| named(&r)).ok_or(ERROR_NAME)?;
        Ok(regions[number].shared(number, regions[number].granted[peer]))
    }

    /// A region by its number, where the peer has to do with it.
    fn of<'a>(
        &self,
        regions: &'a mut [Region],
        number: u64,
        peer: usize,
    ) -> Result<(usize, &'a mut Region), i64> {
        let number = usize::try_from(number).map_err(|_| ERROR_NAME)?;
        let region = regions.get_mut(number).ok_or(ERROR_NAME)?;
        let known = region.granted[peer] != 0 || region.owner == Some(peer);
        if known {
            Ok((number, region))
        } else {
            Err(ERROR_NAME)
        }
    }

    /// [`ASK_REGION_MAP`].
    pub fn map(&self, peer: usize, number: u64, rights: u64) -> Answer {
        let rights = region::rights(rights).ok_or(ERROR_ARGUMENT)?;
        if let Some(member) = &self.member {
            return member.map_again(&self.peers, peer, number, rights);
        }
        let mut regions = self.lock();
        let (number, region) = self.of(&mut regions, number, peer)?;
        if rights & !region.granted[peer] != 0 {
            return Err(ERROR_RIGHT);
        }
        if region.mapped[peer] == rights {
            return Ok(0);
        }
        let asks = self.peers.get(peer)?;
        if asks.space.features() & FEATURE_REGIONS == 0 {
            return Err(ERROR_UNSUPPORTED);
        }
        // With other rights it is still the same peer, for readers of the header.
        let comes = region.mapped[peer] == 0;
        if !comes {
            self.unmap_in(region, number, peer).map_err(|_| ERROR_FULL)?;
        }
        self.map_in(region, number, peer, &asks, rights).map_err(|_| ERROR_FULL)?;
        if comes {
            region.set_state(peer, PEER_PRESENT);
        }
        self.changed.notify_all();
        Ok(0)
    }

    /// [`ASK_REGION_UNMAP`].
    pub fn unmap(&self, peer: usize, number: u64) -> Answer {
        if let Some(member) = &self.member {
            return member.unmap(&self.peers, peer, number);
        }
        let mut regions = self.lock();
        let (number, region) = self.of(&mut regions, number, peer)?;
        if region.mapped[peer] == 0 {
            return Err(ERROR_NAME);
        }
        if self.peers.get(peer)?.space.features() & FEATURE_REGIONS == 0 {
            return Err(ERROR_UNSUPPORTED);
        }
        self.unmap_in(region, number, peer).map_err(|_| ERROR_FULL)?;
        region.set_state(peer, PEER_LEFT);
        Ok(0)
    }

    /// [`ASK_REGION_GRANT`], and with rights 0 [`ASK_REGION_REVOKE`].
    pub fn grant(&self, peer: usize, number: u64, to: u64, rights: u32) -> Answer {
        if let Some(member) = &self.member {
            return member.grant(&self.peers, peer, number, to, rights);
        }
        let mut regions = self.lock();
        let (number, region) = self.of(&mut regions, number, peer)?;
        let to = usize::try_from(to)
            .ok()
            .filter(|to| *to < self.peers.table.limit())
            .ok_or(ERROR_NAME)?;
        if rights != 0 {
            self.peers.get(to)?;
        }
        if region.owner != Some(peer) {
            return Err(ERROR_RIGHT);
        }
        region.granted[to] = rights;
        // What a peer loses, its family loses: they are one program.
        let mut losers = vec![to];
        if let Some(family) = self.peers.table.get(to).map(|peer| peer.family) {
            let all = self.peers.table.all();
            let owners = all.iter().any(|(at, other)| *at == peer && other.family == family);
            let others = all.iter().filter(|(at, other)| *at != to && other.family == family);
            losers.extend(others.filter(|_| !owners).map(|(at, _)| *at));
        }
        let mut lost = Vec::new();
        for at in losers {
            region.granted[at] &= rights;
            if region.mapped[at] & !rights != 0 {
                self.unmap_in(region, number, at).map_err(|_| ERROR_FULL)?;
                region.set_state(at, PEER_DEAD);
                lost.push(at);
            }
        }
        drop(regions);
        lost.into_iter().for_each(|at| self.tell_others(at));
        Ok(0)
    }

    /// [`ASK_RENDEZVOUS`].
    pub fn rendezvous(&self, peer: usize, number: u64, count: u64, deadline: u64) -> Answer {
        if let Some(member) = &self.member {
            return member.rendezvous(&self.peers, peer, number, count, deadline);
        }
        if count > self.peers.table.limit() as u64 {
            return Err(ERROR_ARGUMENT);
        }
        let mut regions = self.lock();
        loop {
            let (_, region) = self.of(&mut regions, number, peer)?;
            let came = u64::from(region.came.count_ones());
            if came >= count || self.peers.is_over(peer) {
                return Ok(came);
            }
            if deadline != NO_DEADLINE && self.peers.clock.now() >= deadline {
                return Err(ERROR_TIMEOUT);
            }
            // An hour at a time: a condition variable counts from now, and may not have room for more.
            let left = self.peers.clock.until(deadline).min(Duration::from_secs(3600));
            let until = Instant::now() + left;
            let wait = until.saturating_duration_since(Instant::now());
            regions =
                self.changed.wait_timeout(regions, wait).map_or_else(|e| e.into_inner().0, |r| r.0);
        }
    }

    fn tell_others(&self, peer: usize) {
        let others = self.peers.table.all().into_iter().filter(|(other, _)| *other != peer);
        others.for_each(|(other, _)| self.peers.ring(other));
        self.changed.notify_all();
    }

    /// Removes a number from all regions. Its regions keep no owner.
    fn leave_regions(&self, number: usize, state: u32) {
        for region in self.lock().iter_mut() {
            if region.mapped[number] != 0 {
                region.mapped[number] = 0;
                region.set_state(number, state);
            }
            if region.owner == Some(number) {
                region.owner = Some(region::NOBODY);
            }
        }
    }

    /// A peer is gone, by its own will or not: every header says so, and everybody looks. It must not run again.
    pub fn gone(&self, peer: usize, state: u32) {
        self.end_bound(peer);
        match &self.member {
            Some(member) => member.forget(peer),
            None => self.leave_regions(peer, state),
        }
        let family = self.peers.table.leave(peer, state, || {
            // A keeper writes the headers, and gives other runs' peers their tokens. It knows that the number is free
            // before anybody asks it for one because this peer is seen to be gone.
            if let Some(member) = &self.member {
                member.say(&ToKeeper::Gone { peer, state });
            }
        });
        self.end_all(&family);
        if let Some(spawner) = self.spawner.get() {
            spawner.notify();
        }
        self.tell_others(peer);
    }

    /// A peer that was to be is not: its number is free again.
    pub fn forget(&self, number: usize) {
        let Some(member) = &self.member else {
            self.leave_regions(number, PEER_DEAD);
            return self.peers.table.give_back(number);
        };
        member.forget(number);
        self.peers.table.give_back(number);
        member.say(&ToKeeper::Gone { peer: number, state: PEER_DEAD });
    }

    /// Before the start of a spawned peer: it gets the regions that its parent has mapped.
    pub fn inherit(&self, parent: usize, number: usize, peer: &Arc<Peer>) -> Result<()> {
        if let Some(member) = &self.member {
            return member.inherit(&self.peers, number, peer);
        }
        for (i, region) in self.lock().iter_mut().enumerate() {
            let rights = region.mapped[parent];
            region.granted[number] = rights;
            if rights != 0 {
                self.map_in(region, i, number, peer, rights)?;
                region.set_state(number, PEER_PRESENT);
            }
        }
        Ok(())
    }

    /// [`ASK_SPAWN`].
    pub fn spawn(&self, peer: usize, entry: u64, argument: u64, stack: Area, bound: u64) -> Answer {
        self.spawner
            .get()
            .ok_or(ERROR_UNSUPPORTED)?
            .clone()
            .spawn(peer, entry, argument, stack, bound)
    }

    /// Ends the peers that are bound to this one, before it is reported gone.
    fn end_bound(&self, peer: usize) {
        let Some(spawner) = self.spawner.get() else { return };
        let Some(generation) = self.peers.table.get(peer).map(|peer| peer.generation) else {
            return;
        };
        // One of them may have been making another.
        spawner.wait_until(&|| {
            let mut here = self.peers.table.all();
            here.retain(|(_, other)| other.bound == Some((peer, generation)));
            self.end_all(&here);
            here.is_empty()
        });
    }

    /// [`ASK_END`].
    pub fn end(&self, peer: usize, number: u64, generation: u64) -> Answer {
        let number = usize::try_from(number).map_err(|_| ERROR_NAME)?;
        let known = self.peers.table.life(number).generation;
        if generation == 0 || generation > u64::from(known) {
            return Err(ERROR_NAME);
        }
        let there = self.peers.table.get(number).filter(|p| u64::from(p.generation) == generation);
        let Some(there) = there else { return Ok(0) };
        if there.family == number || there.family != self.peers.get(peer)?.family {
            return Err(ERROR_RIGHT);
        }
        self.end_all(&[(number, there)]);
        Ok(0)
    }
}

#[cfg(test)]
pub(crate) mod tests;
