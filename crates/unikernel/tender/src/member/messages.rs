//! The thread that receives the keeper's messages, and handles them in their order.

use super::{mapping, Member, OnSuccess, Request};
use crate::console;
use crate::error::{Present, Result};
use crate::memory::{shared_block, Block};
use crate::peers::Peers;
use crate::signals::poll_fd;
use kyozon_abi::unikernel::*;
use kyozon_join::message::{FromKeeper, RegionInfo, ToKeeper};
use kyozon_join::Error;
use rustix::event::poll;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use vmm_sys_util::eventfd::EventFd;

/// The `id` of a request whose answer is dropped.
const NO_REQUEST: u64 = u64::MAX;

impl Member {
    /// Receives messages until `done` is signalled, or until the keeper is gone. Then all guests end.
    pub fn serve(&self, peers: &Peers, done: &EventFd) {
        loop {
            let lifeline = self.lifeline();
            let mut polls = [poll_fd(&lifeline), poll_fd(done)];
            // An interrupted wait has no events.
            let _ = poll(&mut polls, None);
            let [message, end] = polls.map(|poll| !poll.revents().is_empty());
            if message {
                match self.socket.receive::<FromKeeper>() {
                    Ok((message, fds)) => self.handle(peers, message, fds),
                    Err(error) => {
                        let why = match error {
                            Error::Gone => "the group's keeper is gone".to_owned(),
                            other => other.to_string(),
                        };
                        console::message(&format!("kyozon: {why}: the guests end"));
                        peers.stop();
                        return self.wake();
                    }
                }
            } else if end {
                return;
            }
        }
    }

    fn handle(&self, peers: &Peers, message: FromKeeper, fds: Vec<OwnedFd>) {
        match message {
            FromKeeper::Answer { id, result, region } => {
                self.on_answer(peers, id, result, region, fds);
            }
            FromKeeper::Seat { id, peer, generation, regions } => {
                self.on_spawned(peers, id, (peer, generation), regions);
            }
            FromKeeper::Take { serial, peer, number } => {
                let mapped = self.lock().mapped.remove(&(number, peer));
                let unmapped = mapped.is_none_or(|mapped| unmap(peers, peer, &mapped).is_ok());
                if unmapped {
                    self.send(&ToKeeper::Taken { serial });
                } else {
                    peers.end(peer);
                }
            }
            FromKeeper::Stop { peer } => {
                // The end of a spawned peer does not change the exit status of the run.
                let spawned = |peer| {
                    peers.table.get_or_reserved(peer).is_none_or(|other| other.family != peer)
                };
                if !peer.is_some_and(spawned) {
                    self.killed.store(true, Ordering::SeqCst);
                }
                match peer {
                    Some(peer) => peers.end(peer),
                    None => peers.stop(),
                }
                self.wake();
            }
            _ => {}
        }
    }

    /// Reserves a spawned peer's number, and records its mappings, which are its parent's. If the parent no longer
    /// waits for the answer, the keeper gets the number back.
    fn on_spawned(
        &self,
        peers: &Peers,
        id: u64,
        (peer, generation): (usize, u32),
        regions: Vec<RegionInfo>,
    ) {
        let mut inner = self.lock();
        let request = inner.requests.remove(&id);
        let Some(Request::Sent(OnSuccess::Spawn { parent, memory })) = request else {
            return self.send(&ToKeeper::Gone { peer, state: PEER_DEAD });
        };
        peers.table.reserve_at(peer, memory);
        // The former peer of this number may have got an answer after its end.
        inner.mapped.retain(|(_, of), _| *of != peer);
        for region in regions {
            let number = region.number;
            match inner.mapped.get(&(number, parent)).map(|(_, block)| block.clone()) {
                Some(block) => drop(inner.mapped.insert((number, peer), (region, block))),
                // The parent could not map the region either.
                None => self.send(&ToKeeper::Unmap { id: NO_REQUEST, peer, number }),
            }
        }
        let seat = i64::from(generation & 0x7fff_ffff) << 32 | peer as i64;
        inner.requests.insert(id, Request::Answered(seat, None));
        drop(inner);
        self.changed.notify_all();
    }

    /// Does what the request needs, then gives the answer to the waiting thread.
    fn on_answer(
        &self,
        peers: &Peers,
        id: u64,
        mut result: i64,
        region: Option<RegionInfo>,
        fds: Vec<OwnedFd>,
    ) {
        let Some(Request::Sent(on_success)) = self.lock().requests.remove(&id) else { return };
        if result >= 0 {
            let done = match on_success {
                // The keeper accepts a spawn with another message, `Seat`.
                OnSuccess::Nothing | OnSuccess::Spawn { .. } => Ok(()),
                OnSuccess::Map { peer } => self.remap(peers, peer, region.as_ref(), fds),
                OnSuccess::Unmap { peer, number } => {
                    let mapped = self.lock().mapped.remove(&(number, peer));
                    mapped.map_or(Ok(()), |mapped| unmap(peers, peer, &mapped))
                }
            };
            if done.is_err() {
                result = ERROR_FULL;
            }
        }
        self.lock().requests.insert(id, Request::Answered(result, region));
        self.changed.notify_all();
    }

    /// Maps a region, in place of the peer's present mapping of it.
    fn remap(
        &self,
        peers: &Peers,
        number: usize,
        region: Option<&RegionInfo>,
        fds: Vec<OwnedFd>,
    ) -> Result<()> {
        let region = region.present("the keeper granted no region")?;
        let fd = fds.into_iter().next().present("the keeper sent no descriptor")?;
        let block = shared_block(region.bytes, fd.into(), region.rights & REGION_WRITE != 0);
        let peer = peers.table.get(number).present("the peer is gone")?;
        let key = (region.number, number);
        let before = self.lock().mapped.remove(&key);
        if let Some((before, block)) = before {
            peer.unmap(&mapping(&before, &block))?;
        }
        let mapped = block.and_then(|block| peer.map(&mapping(region, &block)).map(|()| block));
        match mapped {
            Ok(block) => {
                self.lock().mapped.insert(key, (region.clone(), block));
                Ok(())
            }
            Err(error) => {
                self.send(&ToKeeper::Unmap { id: NO_REQUEST, peer: number, number: region.number });
                Err(error)
            }
        }
    }
}

/// Unmaps a region from a peer, also from one that is being made. Does nothing if the peer is gone.
fn unmap(peers: &Peers, peer: usize, (region, block): &(RegionInfo, Block)) -> Result<()> {
    let mapping = mapping(region, block);
    peers.table.get_or_reserved(peer).map_or(Ok(()), |peer| peer.unmap(&mapping))
}
