//! Requests to the keeper, on the thread of the guest whose call they serve.

use super::{shared_region, Member, OnSuccess, Request};
use crate::peers::Peers;
use kyozon_abi::unikernel::*;
use kyozon_join::message::{RegionInfo, ToKeeper};
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Member {
    /// Sends the message that `message` makes from an `id`, and waits for the answer until the deadline, or until the
    /// peer must end.
    ///
    /// # Errors
    ///
    /// The keeper's `ERROR_*`; `ERROR_TIMEOUT` if the wait ended without an answer.
    fn request(
        &self,
        peers: &Peers,
        peer: usize,
        on_success: OnSuccess,
        deadline: u64,
        message: impl FnOnce(u64) -> ToKeeper,
    ) -> Result<(u64, Option<RegionInfo>), i64> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.lock().requests.insert(id, Request::Sent(on_success));
        self.send(&message(id));
        let mut inner = self.lock();
        loop {
            if let Some(Request::Answered(..)) = inner.requests.get(&id) {
                break;
            }
            let late = deadline != NO_DEADLINE && peers.clock.now() >= deadline;
            if late || peers.must_end(peer) {
                // A later answer is dropped, except to a request for a mapping, which has no deadline.
                inner.requests.remove(&id);
                return Err(ERROR_TIMEOUT);
            }
            let left = peers.clock.until(deadline).min(Duration::from_millis(200));
            inner =
                self.changed.wait_timeout(inner, left).map_or_else(|e| e.into_inner().0, |r| r.0);
        }
        match inner.requests.remove(&id) {
            Some(Request::Answered(result, region)) => {
                u64::try_from(result).map(|value| (value, region)).map_err(|_| result)
            }
            _ => Err(ERROR_TIMEOUT),
        }
    }

    /// Reserves a number for a peer that `parent` spawns with `memory` bytes of private memory, and returns it with its
    /// next generation.
    pub fn reserve(&self, peers: &Peers, parent: usize, memory: u64) -> Result<(usize, u32), i64> {
        let on_success = OnSuccess::Spawn { parent, memory };
        let spawn = |id| ToKeeper::Spawn { id, peer: parent, memory };
        let seat = self.request(peers, parent, on_success, NO_DEADLINE, spawn)?.0;
        Ok((seat as u32 as usize, (seat >> 32) as u32))
    }

    /// [`ASK_REGION_CREATE`].
    pub fn create(
        &self,
        peers: &Peers,
        peer: usize,
        name: &[u8],
        bytes: u64,
        at: Option<u64>,
    ) -> Result<u64, i64> {
        let name = crate::region::name(name).ok_or(ERROR_ARGUMENT)?.to_owned();
        let create = |id| ToKeeper::Create { id, peer, name, bytes, at };
        self.request(peers, peer, OnSuccess::Nothing, NO_DEADLINE, create).map(|answer| answer.0)
    }

    /// [`ASK_REGION_OPEN`].
    pub fn open(&self, peers: &Peers, peer: usize, name: &[u8]) -> Result<SharedRegion, i64> {
        let name = crate::region::name(name).ok_or(ERROR_NAME)?.to_owned();
        let open = |id| ToKeeper::Open { id, peer, name };
        let (_, region) = self.request(peers, peer, OnSuccess::Nothing, NO_DEADLINE, open)?;
        Ok(shared_region(&region.ok_or(ERROR_NAME)?))
    }

    /// [`ASK_REGION_MAP`].
    pub fn map(&self, peers: &Peers, peer: usize, number: u64, rights: u32) -> Result<u64, i64> {
        let mapped = self.lock().mapped.get(&(number, peer)).map(|(region, _)| region.rights);
        if mapped == Some(rights) {
            return Ok(0);
        }
        if peers.get(peer)?.space.features() & FEATURE_REGIONS == 0 {
            return Err(ERROR_UNSUPPORTED);
        }
        let map = |id| ToKeeper::Map { id, peer, number, rights };
        self.request(peers, peer, OnSuccess::Map { peer }, NO_DEADLINE, map).map(|_| 0)
    }

    /// [`ASK_REGION_UNMAP`].
    pub fn unmap(&self, peers: &Peers, peer: usize, number: u64) -> Result<u64, i64> {
        if !self.lock().mapped.contains_key(&(number, peer)) {
            return Err(ERROR_NAME);
        }
        if peers.get(peer)?.space.features() & FEATURE_REGIONS == 0 {
            return Err(ERROR_UNSUPPORTED);
        }
        let on_success = OnSuccess::Unmap { peer, number };
        let unmap = |id| ToKeeper::Unmap { id, peer, number };
        self.request(peers, peer, on_success, NO_DEADLINE, unmap).map(|_| 0)
    }

    /// [`ASK_REGION_GRANT`], and with rights 0 [`ASK_REGION_REVOKE`].
    pub fn grant(
        &self,
        peers: &Peers,
        peer: usize,
        number: u64,
        to: u64,
        rights: u32,
    ) -> Result<u64, i64> {
        let grant = |id| ToKeeper::Grant { id, peer, number, to, rights };
        self.request(peers, peer, OnSuccess::Nothing, NO_DEADLINE, grant).map(|answer| answer.0)
    }

    /// [`ASK_RENDEZVOUS`].
    pub fn rendezvous(
        &self,
        peers: &Peers,
        peer: usize,
        number: u64,
        count: u64,
        deadline: u64,
    ) -> Result<u64, i64> {
        if count > MAX_PEERS as u64 {
            return Err(ERROR_ARGUMENT);
        }
        // A first request returns the present count, even if the deadline has passed.
        let meet = |count| move |id| ToKeeper::Meet { id, peer, number, count };
        let present = self.request(peers, peer, OnSuccess::Nothing, NO_DEADLINE, meet(0))?.0;
        if present >= count {
            return Ok(present);
        }
        self.request(peers, peer, OnSuccess::Nothing, deadline, meet(count)).map(|answer| answer.0)
    }
}
