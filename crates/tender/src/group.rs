//! Peers, their tokens, their regions.
//!
//! One lock guards all regions: of the list, the rights and what backends map, so that a right that was taken away is
//! away when the call that took it returns. Nothing waits while it holds the lock, but for a rendezvous, which gives
//! it up meanwhile.

use crate::backend::{Kick, Space};
use crate::clock::Clock;
use crate::device::Devices;
use crate::layout::PAGE;
use crate::memory::Memory;
use crate::region::{self, Region, ALL};
use anyhow::{ensure, Result};
use kyozon_abi::unikernel::*;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};
use vmm_sys_util::eventfd::EventFd;

/// One guest, as the others' threads see it.
pub struct Peer {
    /// Its address space, which goes before its memory does.
    pub space: Arc<dyn Space>,
    /// Its memory.
    pub memory: Arc<Memory>,
    /// Interrupts its processor, once that has a thread.
    pub kick: OnceLock<Box<dyn Kick>>,
    /// It has to end, for no fault of its own.
    pub lost: AtomicBool,
    /// Its devices.
    pub devices: Devices,
}

/// What a call about regions answers: a number, or `ERROR_*`.
type Answer = Result<u64, i64>;

/// Peers that belong together.
pub struct Group {
    /// By number.
    pub peers: Vec<Peer>,
    /// Their tokens.
    pub tokens: Vec<EventFd>,
    /// Their clock.
    pub clock: Clock,
    regions: Mutex<Vec<Region>>,
    changed: Condvar,
    stopped: AtomicBool,
}

impl Group {
    /// Puts peers together, with no regions.
    pub fn new(peers: Vec<Peer>, tokens: Vec<EventFd>, clock: Clock) -> Self {
        Self {
            peers,
            tokens,
            clock,
            regions: Mutex::default(),
            changed: Condvar::new(),
            stopped: AtomicBool::new(false),
        }
    }

    /// Gives a peer its token.
    pub fn ring(&self, peer: usize) {
        if let Some(token) = self.tokens.get(peer) {
            // A counter that is full has a token.
            let _ = token.write(1);
        }
    }

    /// Ends everything: processors come back, nobody sleeps.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        for (number, peer) in self.peers.iter().enumerate() {
            self.ring(number);
            if let Some(kick) = peer.kick.get() {
                kick.kick();
            }
        }
        drop(self.lock());
        self.changed.notify_all();
    }

    /// Whether a peer has to end.
    pub fn is_over(&self, peer: usize) -> bool {
        self.stopped.load(Ordering::SeqCst) || self.peers[peer].lost.load(Ordering::SeqCst)
    }

    /// Sleeps until a peer has its token, or until the deadline. Whether it was the deadline.
    pub fn park(&self, peer: usize, deadline: u64) -> bool {
        let token = &self.tokens[peer];
        loop {
            if token.read().is_ok() {
                return false;
            }
            if deadline != NO_DEADLINE && self.clock.now() >= deadline {
                return true;
            }
            let left = self.clock.until(deadline);
            let time = libc::timespec {
                tv_sec: left.as_secs().min(1 << 32) as libc::time_t,
                tv_nsec: left.subsec_nanos().into(),
            };
            let limit = if deadline == NO_DEADLINE { std::ptr::null() } else { &raw const time };
            let mut poll = libc::pollfd { fd: token.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: both structures live in this function.
            let woken = unsafe { libc::ppoll(&mut poll, 1, limit, std::ptr::null()) };
            if woken < 0 && self.is_over(peer) {
                return false;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Region>> {
        self.regions.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Before the start: a region of the group's, mapped by all peers.
    pub fn add(&self, name: &str, bytes: u64, at: Option<u64>, write: bool) -> Result<()> {
        let mut regions = self.lock();
        ensure!(
            region::name(name.as_bytes()).is_some(),
            "{name:?} is no name of a region: 1 to {REGION_NAME_BYTES} letters, digits, '-', '_', '.'"
        );
        ensure!(regions.iter().all(|r| r.name != name), "the region {name} is named twice");
        ensure!(regions.len() < MAX_REGIONS, "more than {MAX_REGIONS} regions");
        let address = region::place(&regions, bytes, at).map_err(|error| {
            let range = format!("{REGION_BASE:#x}..{REGION_END:#x}");
            match error {
                ERROR_EXISTS => anyhow::anyhow!("the region {name} overlaps another"),
                ERROR_ARGUMENT => {
                    anyhow::anyhow!("the region {name}: a size is a multiple of 4K, at least 8K")
                }
                ERROR_FULL => anyhow::anyhow!("there is no room for the region {name} in {range}"),
                _ => anyhow::anyhow!(
                    "the region {name} is not in {range}, or not at a multiple of 4K"
                ),
            }
        })?;
        regions.push(Region::new(name, address, bytes, None)?);
        let number = regions.len() - 1;
        let region = &mut regions[number];
        let rights = if write { ALL } else { REGION_READ };
        region.granted = [rights; MAX_PEERS];
        for peer in 0..self.peers.len() {
            self.map_in(region, number, peer, rights)?;
            region.tell(peer, PEER_HERE);
        }
        Ok(())
    }

    /// Regions that are mapped by a peer, for its boot block.
    pub fn mapped_by(&self, peer: usize) -> Vec<SharedRegion> {
        let regions = self.lock();
        let here = regions.iter().enumerate().filter(|(_, r)| r.mapped[peer] != 0);
        here.map(|(number, r)| r.shared(number, r.mapped[peer])).collect()
    }

    fn map_in(&self, region: &mut Region, number: usize, peer: usize, rights: u32) -> Result<()> {
        let Peer { memory, space, .. } = &self.peers[peer];
        let mapping = region.mapping(number, rights);
        space.map(&mapping)?;
        memory.add(region.address, &region.block, 0, PAGE, false);
        memory.add(region.address + PAGE, &region.block, PAGE, region.bytes - PAGE, mapping.write);
        region.mapped[peer] = rights;
        region.came |= 1 << peer;
        Ok(())
    }

    /// Takes a mapping away.
    fn unmap_in(&self, region: &mut Region, number: usize, peer: usize) -> Result<()> {
        let Peer { memory, space, lost, kick, .. } = &self.peers[peer];
        let mapping = region.mapping(number, region.mapped[peer]);
        memory.remove(region.address, region.bytes);
        region.mapped[peer] = 0;
        if !space.unmap(&mapping)? {
            lost.store(true, Ordering::SeqCst);
            if let Some(kick) = kick.get() {
                kick.kick();
            }
        }
        Ok(())
    }

    /// A guest's memory for regions of its own is as much as its memory.
    fn budget(&self, regions: &[Region], peer: usize) -> u64 {
        let own = regions.iter().filter(|r| r.owner == Some(peer)).map(|r| r.bytes).sum();
        self.peers[peer].memory.layout.bytes.saturating_sub(own)
    }

    /// [`ASK_REGION_CREATE`].
    pub fn create(&self, peer: usize, name: &[u8], bytes: u64, at: Option<u64>) -> Answer {
        if self.peers[peer].space.features() & FEATURE_REGIONS == 0 {
            return Err(ERROR_UNSUPPORTED);
        }
        let name = region::name(name).ok_or(ERROR_ARGUMENT)?;
        let mut regions = self.lock();
        if regions.iter().any(|r| r.name == name) {
            return Err(ERROR_EXISTS);
        }
        let address = region::place(&regions, bytes, at)?;
        if regions.len() == MAX_REGIONS || bytes > self.budget(&regions, peer) {
            return Err(ERROR_FULL);
        }
        regions.push(Region::new(name, address, bytes, Some(peer)).map_err(|_| ERROR_FULL)?);
        Ok(regions.len() as u64 - 1)
    }

    /// [`ASK_REGION_OPEN`].
    pub fn open(&self, peer: usize, name: &[u8]) -> Result<SharedRegion, i64> {
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
        let mut regions = self.lock();
        let (number, region) = self.of(&mut regions, number, peer)?;
        if rights & !region.granted[peer] != 0 {
            return Err(ERROR_RIGHT);
        }
        if region.mapped[peer] == rights {
            return Ok(0);
        }
        if self.peers[peer].space.features() & FEATURE_REGIONS == 0 {
            return Err(ERROR_UNSUPPORTED);
        }
        // With other rights it is still the same peer, for those who look at the header.
        let comes = region.mapped[peer] == 0;
        if !comes {
            self.unmap_in(region, number, peer).map_err(|_| ERROR_FULL)?;
        }
        self.map_in(region, number, peer, rights).map_err(|_| ERROR_FULL)?;
        if comes {
            region.tell(peer, PEER_HERE);
        }
        self.changed.notify_all();
        Ok(0)
    }

    /// [`ASK_REGION_UNMAP`].
    pub fn unmap(&self, peer: usize, number: u64) -> Answer {
        let mut regions = self.lock();
        let (number, region) = self.of(&mut regions, number, peer)?;
        if region.mapped[peer] == 0 {
            return Err(ERROR_NAME);
        }
        if self.peers[peer].space.features() & FEATURE_REGIONS == 0 {
            return Err(ERROR_UNSUPPORTED);
        }
        self.unmap_in(region, number, peer).map_err(|_| ERROR_FULL)?;
        region.tell(peer, PEER_LEFT);
        Ok(0)
    }

    /// [`ASK_REGION_GRANT`], and with rights 0 [`ASK_REGION_REVOKE`].
    pub fn grant(&self, peer: usize, number: u64, to: u64, rights: u32) -> Answer {
        let mut regions = self.lock();
        let (number, region) = self.of(&mut regions, number, peer)?;
        let to = usize::try_from(to).ok().filter(|to| *to < self.peers.len()).ok_or(ERROR_NAME)?;
        if region.owner != Some(peer) {
            return Err(ERROR_RIGHT);
        }
        region.granted[to] = rights;
        if region.mapped[to] & !rights != 0 {
            self.unmap_in(region, number, to).map_err(|_| ERROR_FULL)?;
            region.tell(to, PEER_DEAD);
            drop(regions);
            self.tell_others(to);
        }
        Ok(0)
    }

    /// [`ASK_RENDEZVOUS`].
    pub fn rendezvous(&self, peer: usize, number: u64, count: u64, deadline: u64) -> Answer {
        if count > self.peers.len() as u64 {
            return Err(ERROR_ARGUMENT);
        }
        let mut regions = self.lock();
        loop {
            let (_, region) = self.of(&mut regions, number, peer)?;
            let came = u64::from(region.came.count_ones());
            if came >= count || self.is_over(peer) {
                return Ok(came);
            }
            if deadline != NO_DEADLINE && self.clock.now() >= deadline {
                return Err(ERROR_TIMEOUT);
            }
            // An hour at a time: a condition variable counts from now, and may not have room for more.
            let left = self.clock.until(deadline).min(Duration::from_secs(3600));
            let until = Instant::now() + left;
            let wait = until.saturating_duration_since(Instant::now());
            regions =
                self.changed.wait_timeout(regions, wait).map_or_else(|e| e.into_inner().0, |r| r.0);
        }
    }

    fn tell_others(&self, peer: usize) {
        (0..self.tokens.len()).filter(|other| *other != peer).for_each(|other| self.ring(other));
        self.changed.notify_all();
    }

    /// A peer is gone, by its own will or not: every header says so, and everybody looks.
    pub fn gone(&self, peer: usize, state: u32) {
        let mut regions = self.lock();
        for region in regions.iter_mut().filter(|r| r.mapped[peer] != 0) {
            region.mapped[peer] = 0;
            region.tell(peer, state);
        }
        drop(regions);
        self.tell_others(peer);
    }
}

#[cfg(test)]
#[path = "group_tests.rs"]
pub(crate) mod tests;
