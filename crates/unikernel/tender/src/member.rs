//! A run that shares its group with other runs: its connection to the group's keeper.
//!
//! A guest's thread sends a request and waits for the answer (`requests`). One thread receives all messages, and
//! handles them in the keeper's order (`messages`): a region that was granted and then revoked is mapped, then
//! unmapped. Requests that the keeper leaves unanswered end with the run.

pub mod joining;
mod messages;
mod requests;

use crate::backend::Mapping;
use crate::error::Result;
use crate::memory::Block;
use crate::peer::Peer;
use crate::peers::Peers;
use kyozon_abi::unikernel::*;
use kyozon_join::message::{FromKeeper, RegionInfo, ToKeeper};
use kyozon_join::socket::Socket;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Maximum time in which the keeper answers a request that waits for nothing else.
const KEEPER_TIMEOUT: Duration = Duration::from_secs(10);

/// The work to do when the keeper accepts a request, before the guest sees the answer.
#[derive(Clone, Copy, Debug)]
enum OnSuccess {
    Nothing,
    Map { peer: usize },
    Unmap { peer: usize, number: u64 },
    Spawn { parent: usize, memory: u64 },
}

/// The state of a request.
enum Request {
    Sent(OnSuccess),
    Answered(i64, Option<RegionInfo>),
}

/// State that the run's threads share.
#[derive(Default)]
struct Inner {
    /// Requests by their `id`.
    requests: BTreeMap<u64, Request>,
    /// The mappings of each peer, also of one that is still being made, by numbers of region and peer.
    mapped: BTreeMap<(u64, usize), (RegionInfo, Block)>,
}

/// A run's connection to the keeper.
pub struct Member {
    socket: Socket,
    inner: Mutex<Inner>,
    /// A request was answered, or a peer must end.
    changed: Condvar,
    next_id: AtomicU64,
    /// `kyozon kill` ended the run.
    pub killed: AtomicBool,
}

impl Member {
    fn new(socket: Socket) -> Self {
        Self {
            socket,
            inner: Mutex::default(),
            changed: Condvar::new(),
            next_id: AtomicU64::new(0),
            killed: AtomicBool::new(false),
        }
    }

    /// The socket's descriptor, for the filter of system calls.
    pub fn descriptor(&self) -> i32 {
        self.socket.as_fd().as_raw_fd()
    }

    /// A socket that hangs up when the keeper ends.
    pub fn lifeline(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Maps into a peer, before the start, a region that the run got when it joined.
    pub fn map_at_start(
        &self,
        number: usize,
        peer: &Peer,
        region: &RegionInfo,
        block: &Block,
    ) -> Result<()> {
        peer.map(&mapping(region, block))?;
        self.lock().mapped.insert((region.number, number), (region.clone(), block.clone()));
        Ok(())
    }

    /// Maps into a new peer the regions that the keeper gave it, and registers it: from then on it can lose them.
    pub fn inherit(&self, peers: &Peers, number: usize, peer: &Arc<Peer>) -> Result<()> {
        let inner = self.lock();
        for (_, (region, block)) in inner.mapped.iter().filter(|(key, _)| key.1 == number) {
            peer.map(&mapping(region, block))?;
        }
        peers.table.attach(number, peer);
        Ok(())
    }

    /// The regions that a peer has mapped, for its boot block.
    pub fn mapped_by(&self, number: usize) -> Vec<SharedRegion> {
        let inner = self.lock();
        let mapped = inner.mapped.iter().filter(|(key, _)| key.1 == number);
        mapped.map(|(_, (region, _))| shared_region(region)).collect()
    }

    /// Removes the records of a peer's mappings, once the peer is gone.
    pub fn forget(&self, peer: usize) {
        self.lock().mapped.retain(|(_, of), _| *of != peer);
    }

    /// Sends a message that needs no answer. Errors are ignored: [`Member::serve`] notices that the keeper is gone.
    pub fn send(&self, message: &ToKeeper) {
        let _ = self.socket.send(message, &[]);
    }

    /// Wakes all threads that wait for an answer, so that they check whether they must end.
    pub fn wake(&self) {
        drop(self.lock());
        self.changed.notify_all();
    }

    /// Reports that all guests have ended. Waits until the keeper knows; if this was the last member, also until the
    /// keeper has removed the group's folder.
    pub fn leave(&self) {
        self.send(&ToKeeper::Leave);
        let end = Instant::now() + KEEPER_TIMEOUT;
        while Instant::now() < end {
            let left = end.saturating_duration_since(Instant::now());
            if self.socket.receive_within::<FromKeeper>(left).is_err() {
                return;
            }
        }
    }
}

/// The backend's description of a region's mapping.
fn mapping(region: &RegionInfo, block: &Block) -> Mapping {
    Mapping {
        number: region.number as usize,
        address: region.address,
        bytes: region.bytes,
        write: region.rights & REGION_WRITE != 0,
        block: block.clone(),
    }
}

/// The guest's description of a region.
pub fn shared_region(region: &RegionInfo) -> SharedRegion {
    let mut name = [0; REGION_NAME_BYTES];
    let bytes = region.name.as_bytes();
    let count = bytes.len().min(REGION_NAME_BYTES);
    name[..count].copy_from_slice(&bytes[..count]);
    let RegionInfo { number, address, bytes, rights, .. } = *region;
    SharedRegion { name, address, bytes, rights, generation: 1, number }
}

#[cfg(test)]
mod tests;
