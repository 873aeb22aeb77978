//! A run that is a member of a group which others have joined: its requests to the group's keeper, and what that
//! wants of it.
//!
//! A guest's thread sends a request and waits. One thread receives, and does what has to be done in the order in which
//! the keeper said it: so a region that was granted, then revoked, is mapped, then unmapped. Whatever the keeper does
//! not answer ends with the run.

use crate::backend::Mapping;
use crate::clock::Clock;
use crate::error::{bail, ensure, Present, Result};
use crate::keeper;
use crate::memory::{shared_block, Block};
use crate::peer::Peer;
use crate::peers::Peers;
use crate::signals::poll_fd;
use kyozon_abi::unikernel::*;
use kyozon_join::message::{FromKeeper, Join, RegionInfo, RegionRequest, ToKeeper, VERSION};
use kyozon_join::place::{Met, Place};
use kyozon_join::socket::Socket;
use kyozon_join::Error;
use rustix::event::poll;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use vmm_sys_util::eventfd::EventFd;

/// How long a keeper may take that has nothing to wait for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which group, and what its first joiner says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// Its name.
    pub name: String,
    /// Bytes of all guests and regions, at most.
    pub memory: Option<u64>,
    /// Peers, at most.
    pub peers: Option<usize>,
}

/// What is done where the answer is good.
#[derive(Clone, Copy, Debug)]
enum Then {
    Nothing,
    Map { peer: usize },
    Unmap { peer: usize, number: u64 },
    Spawn { parent: usize, memory: u64 },
}

/// A request.
enum Wait {
    Asked(Then),
    Answered(i64, Option<RegionInfo>),
}

/// What threads of the run share.
#[derive(Default)]
struct Inner {
    waits: BTreeMap<u64, Wait>,
    /// What each peer has mapped, or will have when it is made.
    mapped: BTreeMap<(u64, usize), (RegionInfo, Block)>,
}

/// The run as a member.
pub struct Member {
    socket: Socket,
    inner: Mutex<Inner>,
    changed: Condvar,
    next: AtomicU64,
    /// The run was ended by `kyozon kill`.
    pub killed: AtomicBool,
}

/// The keeper's answer to a run that joined.
pub struct Joined {
    /// The run as a member.
    pub member: Member,
    /// Number of its first peer.
    pub first: usize,
    /// Highest number that a peer of the group has, and 1.
    pub peers: usize,
    /// Peers that the group can have at once.
    pub limit: usize,
    /// Of all peers that the group can have.
    pub tokens: Vec<EventFd>,
    /// The group's.
    pub clock: Clock,
    /// What was wanted, in that order.
    pub regions: Vec<(RegionInfo, Block)>,
}

/// Connects to a group, or makes it and its keeper. To be called by a process of one thread.
pub fn meet(meeting: &Meeting) -> Result<Socket> {
    let place = Place::find()?;
    match place.meet(&meeting.name)? {
        Met::Joined(socket) => Ok(socket),
        Met::Made { socket, listener, lock } => {
            keeper::start(&place, &meeting.name, listener, lock)?;
            Ok(socket)
        }
    }
}

/// One of this run's peers, where it is not gone.
fn peer_of(peers: &Peers, peer: usize) -> Result<Arc<Peer>> {
    peers.table.get(peer).present("the peer is gone")
}

/// Takes a region away from a peer, also from one that is being made; from one that is gone there is nothing to take.
fn unmap(peers: &Peers, peer: usize, (known, block): &(RegionInfo, Block)) -> Result<()> {
    let mapping = known_mapping(known, block);
    peers.table.made(peer).map_or(Ok(()), |peer| peer.unmap(&mapping))
}

fn known_mapping(known: &RegionInfo, block: &Block) -> Mapping {
    Mapping {
        number: known.number as usize,
        address: known.address,
        bytes: known.bytes,
        write: known.rights & REGION_WRITE != 0,
        block: block.clone(),
    }
}

impl Joined {
    /// Joins with `guests` guests of `memory` bytes each.
    pub fn new(
        socket: Socket,
        meeting: &Meeting,
        clock: Clock,
        (image, backend): (&str, &str),
        (guests, memory): (usize, u64),
        regions: Vec<RegionRequest>,
    ) -> Result<Self> {
        let join = Join {
            version: VERSION,
            image: image.into(),
            backend: backend.into(),
            peers: guests,
            memory,
            clock: Some(clock),
            regions,
            group_memory: meeting.memory,
            group_peers: meeting.peers,
        };
        socket.send(&ToKeeper::Join(join), &[])?;
        let (welcome, descriptors) = socket.receive_within(PATIENCE)?;
        let (first, peers, limit, clock, regions) = match welcome {
            FromKeeper::Welcome { first, peers, limit, clock, regions } => {
                (first, peers, limit, clock, regions)
            }
            FromKeeper::Refused(why) => bail!(Group, "{why}"),
            _ => bail!(Group, "the group's keeper says something else than it should"),
        };
        ensure!(Group, descriptors.len() == MAX_PEERS + regions.len(), "descriptors are missing");
        let mut descriptors = descriptors.into_iter();
        // SAFETY: each descriptor is an eventfd's, and was its owner's alone.
        let token = |fd: OwnedFd| unsafe { EventFd::from_raw_fd(fd.into_raw_fd()) };
        let tokens = descriptors.by_ref().take(MAX_PEERS).map(token).collect();
        let block = |(known, fd): (RegionInfo, OwnedFd)| {
            let write = known.rights & REGION_WRITE != 0;
            let block = shared_block(known.bytes, fd.into(), write)?;
            Ok((known, block))
        };
        let regions = regions.into_iter().zip(descriptors).map(block).collect::<Result<_>>()?;
        let member = Member::new(socket);
        Ok(Self { member, first, peers, limit, tokens, clock, regions })
    }
}

impl Member {
    fn new(socket: Socket) -> Self {
        Self {
            socket,
            inner: Mutex::default(),
            changed: Condvar::new(),
            next: AtomicU64::new(0),
            killed: AtomicBool::new(false),
        }
    }

    /// For the filter of system calls.
    pub fn descriptor(&self) -> i32 {
        self.socket.as_fd().as_raw_fd()
    }

    /// What hangs up when this run is no more.
    pub fn lifeline(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Before the start: a peer maps a region that it was granted when it joined.
    pub fn map(&self, number: usize, peer: &Peer, known: &RegionInfo, block: &Block) -> Result<()> {
        peer.map(&known_mapping(known, block))?;
        self.lock().mapped.insert((known.number, number), (known.clone(), block.clone()));
        Ok(())
    }

    /// The number of a peer that `parent` spawns, with `memory` bytes of its own.
    pub fn seat(&self, peers: &Peers, parent: usize, memory: u64) -> Result<usize, i64> {
        let then = Then::Spawn { parent, memory };
        let spawn = |id| ToKeeper::Spawn { id, peer: parent, memory };
        self.ask(peers, parent, then, NO_DEADLINE, spawn).map(|answer| answer.0 as usize)
    }

    /// A peer that is being made maps what it has; from then on it can lose it.
    pub fn inherit(&self, peers: &Peers, number: usize, peer: &Arc<Peer>) -> Result<()> {
        let inner = self.lock();
        for (_, (known, block)) in inner.mapped.iter().filter(|(key, _)| key.1 == number) {
            peer.map(&known_mapping(known, block))?;
        }
        peers.table.prepare(number, peer);
        Ok(())
    }

    /// Regions that a peer has mapped, for its boot block.
    pub fn mapped_by(&self, number: usize) -> Vec<SharedRegion> {
        let inner = self.lock();
        let here = inner.mapped.iter().filter(|(key, _)| key.1 == number);
        here.map(|(_, (known, _))| shared(known)).collect()
    }

    /// Sends a message that has no answer. [`Member::serve`] notices a keeper that is gone.
    pub fn say(&self, ask: &ToKeeper) {
        let _ = self.socket.send(ask, &[]);
    }

    /// Asks, and waits for the answer until a deadline, or until the peer has to end.
    fn ask(
        &self,
        peers: &Peers,
        peer: usize,
        then: Then,
        deadline: u64,
        ask: impl FnOnce(u64) -> ToKeeper,
    ) -> Result<(u64, Option<RegionInfo>), i64> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().waits.insert(id, Wait::Asked(then));
        self.say(&ask(id));
        let mut inner = self.lock();
        loop {
            if let Some(Wait::Answered(..)) = inner.waits.get(&id) {
                break;
            }
            let late = deadline != NO_DEADLINE && peers.clock.now() >= deadline;
            if late || peers.is_over(peer) {
                // A later answer is dropped, except for a mapping, which has no deadline.
                inner.waits.remove(&id);
                return Err(ERROR_TIMEOUT);
            }
            let left = peers.clock.until(deadline).min(Duration::from_millis(200));
            inner =
                self.changed.wait_timeout(inner, left).map_or_else(|e| e.into_inner().0, |r| r.0);
        }
        match inner.waits.remove(&id) {
            Some(Wait::Answered(result, known)) => {
                u64::try_from(result).map(|value| (value, known)).map_err(|_| result)
            }
            _ => Err(ERROR_TIMEOUT),
        }
    }

    /// Wakes all that wait for an answer, to check whether they have to end.
    pub fn wake(&self) {
        drop(self.lock());
        self.changed.notify_all();
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
        self.ask(peers, peer, Then::Nothing, NO_DEADLINE, |id| ToKeeper::Create {
            id,
            peer,
            name,
            bytes,
            at,
        })
        .map(|answer| answer.0)
    }

    /// [`ASK_REGION_OPEN`].
    pub fn open(&self, peers: &Peers, peer: usize, name: &[u8]) -> Result<SharedRegion, i64> {
        let name = crate::region::name(name).ok_or(ERROR_NAME)?.to_owned();
        let answer = self.ask(peers, peer, Then::Nothing, NO_DEADLINE, |id| ToKeeper::Open {
            id,
            peer,
            name,
        })?;
        Ok(shared(&answer.1.ok_or(ERROR_NAME)?))
    }

    /// [`ASK_REGION_MAP`].
    pub fn map_again(
        &self,
        peers: &Peers,
        peer: usize,
        number: u64,
        rights: u32,
    ) -> Result<u64, i64> {
        let there = self.lock().mapped.get(&(number, peer)).map(|held| held.0.rights);
        if there == Some(rights) {
            return Ok(0);
        }
        if peers.get(peer)?.space.features() & FEATURE_REGIONS == 0 {
            return Err(ERROR_UNSUPPORTED);
        }
        self.ask(peers, peer, Then::Map { peer }, NO_DEADLINE, |id| ToKeeper::Map {
            id,
            peer,
            number,
            rights,
        })
        .map(|_| 0)
    }

    /// [`ASK_REGION_UNMAP`].
    pub fn unmap(&self, peers: &Peers, peer: usize, number: u64) -> Result<u64, i64> {
        if !self.lock().mapped.contains_key(&(number, peer)) {
            return Err(ERROR_NAME);
        }
        if peers.get(peer)?.space.features() & FEATURE_REGIONS == 0 {
            return Err(ERROR_UNSUPPORTED);
        }
        let then = Then::Unmap { peer, number };
        self.ask(peers, peer, then, NO_DEADLINE, |id| ToKeeper::Unmap { id, peer, number })
            .map(|_| 0)
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
        let ask = |id| ToKeeper::Grant { id, peer, number, to, rights };
        self.ask(peers, peer, Then::Nothing, NO_DEADLINE, ask).map(|answer| answer.0)
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
        // First how many there are, whatever the deadline is.
        let meet = |count| move |id| ToKeeper::Meet { id, peer, number, count };
        let now = self.ask(peers, peer, Then::Nothing, NO_DEADLINE, meet(0))?.0;
        if now >= count {
            return Ok(now);
        }
        self.ask(peers, peer, Then::Nothing, deadline, meet(count)).map(|answer| answer.0)
    }

    /// A peer of this run's has nothing any more.
    pub fn forget(&self, peer: usize) {
        self.lock().mapped.retain(|(_, of), _| *of != peer);
    }

    /// Receives until `done` is signalled, or the run ends for what the keeper said.
    pub fn serve(&self, peers: &Peers, done: &EventFd) {
        loop {
            let lifeline = self.lifeline();
            let mut polls = [poll_fd(&lifeline), poll_fd(done)];
            // An interrupted wait has no events.
            let _ = poll(&mut polls, None);
            let [message, end] = polls.map(|poll| !poll.revents().is_empty());
            if message {
                match self.socket.receive::<FromKeeper>() {
                    Ok((tell, fds)) => self.carry_out(peers, tell, fds),
                    Err(error) => {
                        let why = match error {
                            Error::Gone => "the group's keeper is gone".to_owned(),
                            other => other.to_string(),
                        };
                        eprintln!("kyozon: {why}: the guests end");
                        peers.stop();
                        return self.wake();
                    }
                }
            } else if end {
                return;
            }
        }
    }

    fn carry_out(&self, peers: &Peers, tell: FromKeeper, fds: Vec<OwnedFd>) {
        match tell {
            FromKeeper::Answer { id, result, region } => {
                self.answered(peers, id, result, region, fds)
            }
            FromKeeper::Seat { id, peer, regions } => self.seated(peers, id, peer, regions),
            FromKeeper::Take { serial, peer, number } => {
                let held = self.lock().mapped.remove(&(number, peer));
                let gone = held.is_none_or(|held| unmap(peers, peer, &held).is_ok());
                if gone {
                    self.say(&ToKeeper::Taken { serial });
                } else {
                    peers.lose(peer);
                }
            }
            FromKeeper::Stop { peer } => {
                // A thread that is killed is nothing that the run is asked about.
                let spawned = |peer| peers.table.made(peer).is_none_or(|at| at.family != peer);
                if !peer.is_some_and(spawned) {
                    self.killed.store(true, Ordering::SeqCst);
                }
                match peer {
                    Some(peer) => peers.lose(peer),
                    None => peers.stop(),
                }
                self.wake();
            }
            _ => {}
        }
    }

    /// Prepares a peer with the mappings of its parent; gives it back if the parent does not wait any more.
    fn seated(&self, peers: &Peers, id: u64, peer: usize, regions: Vec<RegionInfo>) {
        let mut inner = self.lock();
        let Some(Wait::Asked(Then::Spawn { parent, memory })) = inner.waits.remove(&id) else {
            return self.say(&ToKeeper::Gone { peer, state: PEER_DEAD });
        };
        peers.table.reserve_at(peer, memory);
        // The peer that had the number before may have been answered when it was gone already.
        inner.mapped.retain(|(_, of), _| *of != peer);
        for known in regions {
            let number = known.number;
            match inner.mapped.get(&(number, parent)).map(|held| held.1.clone()) {
                Some(block) => drop(inner.mapped.insert((number, peer), (known, block))),
                // It could not be mapped there, and the answer is dropped.
                None => self.say(&ToKeeper::Unmap { id: u64::MAX, peer, number }),
            }
        }
        inner.waits.insert(id, Wait::Answered(peer as i64, None));
        drop(inner);
        self.changed.notify_all();
    }

    fn answered(
        &self,
        peers: &Peers,
        id: u64,
        mut result: i64,
        known: Option<RegionInfo>,
        fds: Vec<OwnedFd>,
    ) {
        let Some(Wait::Asked(then)) = self.lock().waits.remove(&id) else { return };
        if result >= 0 {
            let done = match then {
                // To a spawn, the good answer is another.
                Then::Nothing | Then::Spawn { .. } => Ok(()),
                Then::Map { peer } => self.remap(peers, peer, known.as_ref(), fds),
                Then::Unmap { peer, number } => {
                    let held = self.lock().mapped.remove(&(number, peer));
                    held.map_or(Ok(()), |held| unmap(peers, peer, &held))
                }
            };
            if done.is_err() {
                result = ERROR_FULL;
            }
        }
        self.lock().waits.insert(id, Wait::Answered(result, known));
        self.changed.notify_all();
    }

    /// Maps a region, in place of what is mapped there.
    fn remap(
        &self,
        peers: &Peers,
        peer: usize,
        known: Option<&RegionInfo>,
        fds: Vec<OwnedFd>,
    ) -> Result<()> {
        let known = known.present("the keeper granted no region")?;
        let fd = fds.into_iter().next().present("the keeper sent no descriptor")?;
        let block = shared_block(known.bytes, fd.into(), known.rights & REGION_WRITE != 0);
        let (key, at) = ((known.number, peer), peer_of(peers, peer)?);
        let before = self.lock().mapped.remove(&key);
        if let Some((before, block)) = before {
            at.unmap(&known_mapping(&before, &block))?;
        }
        let mapped = block.and_then(|block| at.map(&known_mapping(known, &block)).map(|()| block));
        match mapped {
            Ok(block) => {
                self.lock().mapped.insert(key, (known.clone(), block));
                Ok(())
            }
            Err(error) => {
                // The answer is dropped.
                let (id, number) = (u64::MAX, known.number);
                self.say(&ToKeeper::Unmap { id, peer, number });
                Err(error)
            }
        }
    }

    /// All guests have ended: waits until the keeper knows, and has taken the group's folder away where this was the
    /// last member.
    pub fn leave(&self) {
        self.say(&ToKeeper::Leave);
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let left = end.saturating_duration_since(Instant::now());
            if self.socket.receive_within::<FromKeeper>(left).is_err() {
                return;
            }
        }
    }
}

/// As a guest is told of a region.
pub fn shared(known: &RegionInfo) -> SharedRegion {
    let mut name = [0; REGION_NAME_BYTES];
    let bytes = known.name.as_bytes();
    let count = bytes.len().min(REGION_NAME_BYTES);
    name[..count].copy_from_slice(&bytes[..count]);
    let RegionInfo { number, address, bytes, rights, .. } = *known;
    SharedRegion { name, address, bytes, rights, generation: 1, number }
}

#[cfg(test)]
mod tests;
