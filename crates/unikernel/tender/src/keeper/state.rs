//! The keeper's state: connections, their peers, and requests that wait. Receives and dispatches requests.

use crate::error::{Context, Result};
use crate::lives::Lives;
use crate::quota::{peer_bytes, Quota};
use crate::region::Region;
use crate::rules::Regions;
use kyozon_abi::unikernel::*;
use kyozon_join::clock::Clock;
use kyozon_join::message::{FromKeeper, RegionInfo, ToKeeper};
use kyozon_join::socket::Socket;
use kyozon_join::Error;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{pidfd_open, pidfd_send_signal, PidfdFlags, Signal};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::Instant;
use vmm_sys_util::eventfd::EventFd;

/// Number of a connection.
pub(super) type Id = u64;

/// A connected process.
pub(super) struct Connection {
    pub socket: Socket,
    pub pid: i32,
    pub process: Option<OwnedFd>,
    pub member: Option<Member>,
}

/// A connection that joined the group.
pub(super) struct Member {
    pub image: String,
    pub backend: String,
    /// Limits of each of its families.
    pub quota: Quota,
    pub running: bool,
}

/// The peer that has a number.
#[derive(Clone, Copy)]
pub(super) struct PeerEntry {
    /// Its run's or host program's connection.
    pub connection: Id,
    /// Number of the family's first peer, with which it ends; for that peer itself, its own number.
    pub family: usize,
    /// Bytes of its private memory; for the family's first peer, all that the family may have.
    pub memory: u64,
    pub since: Instant,
}

impl Member {
    /// Whether it is a host program, from which a region cannot be unmapped.
    pub fn is_host(&self) -> bool {
        self.backend == "host"
    }

    /// Whether regions can be unmapped from its guests while they run.
    pub fn can_unmap(&self) -> bool {
        self.backend == "kvm"
    }
}

/// A peer that must lose a region before a request is answered.
pub(super) struct Revocation {
    /// Connection of the peer that made the request.
    pub requester: Id,
    /// The request's `id`.
    pub id: u64,
    /// Connection of the peer that loses the region.
    pub from: Id,
    pub serial: u64,
    /// The peer that loses the region.
    pub peer: usize,
    /// Index of the region.
    pub number: usize,
    /// Time at which the tender is late.
    pub end: Instant,
}

/// A peer that waits until `count` peers have mapped a region.
pub(super) struct Rendezvous {
    pub requester: Id,
    pub id: u64,
    pub peer: usize,
    pub number: usize,
    pub count: u64,
}

/// A `kyozon kill` that waits until peers have ended.
pub(super) struct KillRequest {
    pub requester: Id,
    /// The peers that have not ended, with their connections.
    pub left: Vec<(usize, Id)>,
    /// Connections of all its peers. One without peers is about to leave.
    pub connections: Vec<Id>,
    /// Number of peers that it ends.
    pub count: usize,
}

/// A group.
pub(super) struct State {
    pub name: String,
    pub clock: Option<Clock>,
    pub memory_limit: Option<u64>,
    pub peers_limit: usize,
    pub regions: Regions,
    /// A descriptor of each region that cannot write.
    pub read_only_files: Vec<File>,
    pub tokens: Vec<EventFd>,
    /// The table in which all peers see which of them live.
    pub lives: Lives,
    /// A descriptor of the table that cannot write.
    pub lives_reader: OwnedFd,
    /// Generation of each number's latest peer.
    pub generations: [u32; MAX_PEERS],
    /// Peers by number.
    pub peers: [Option<PeerEntry>; MAX_PEERS],
    /// Numbers that a peer has ever had, one bit each.
    pub used: u64,
    /// Numbers whose latest peer joined with its run, one bit each. A spawned peer clears its number's bit.
    pub joined_numbers: u64,
    /// Whether a run has joined.
    pub joined: bool,
    pub connections: BTreeMap<Id, Connection>,
    /// Connections that leave. They are closed once it is known whether the group ends with them.
    pub leaving: Vec<Connection>,
    /// The last number that a connection or a revocation got.
    pub last_number: Id,
    pub revocations: Vec<Revocation>,
    /// Requests to map a region that wait for the end of a revocation.
    pub deferred: Vec<(Id, ToKeeper)>,
    pub rendezvous: Vec<Rendezvous>,
    pub kill_requests: Vec<KillRequest>,
}

impl State {
    pub fn new(name: &str) -> Result<Self> {
        let token = |_| EventFd::new(libc::EFD_NONBLOCK | libc::EFD_CLOEXEC);
        let tokens = (0..MAX_PEERS).map(token).collect::<Result<_, _>>().context("eventfd")?;
        let lives = Lives::new()?;
        Ok(Self {
            name: name.to_owned(),
            clock: None,
            memory_limit: None,
            peers_limit: MAX_PEERS,
            regions: Regions::default(),
            read_only_files: Vec::new(),
            tokens,
            lives_reader: lives.reader()?,
            lives,
            generations: [0; MAX_PEERS],
            peers: [None; MAX_PEERS],
            used: 0,
            joined_numbers: 0,
            joined: false,
            connections: BTreeMap::new(),
            leaving: Vec::new(),
            last_number: 0,
            revocations: Vec::new(),
            deferred: Vec::new(),
            rendezvous: Vec::new(),
            kill_requests: Vec::new(),
        })
    }

    /// Descriptors that the keeper must keep open.
    pub fn descriptors(&self) -> Vec<i32> {
        let lives = [self.lives.file().as_raw_fd(), self.lives_reader.as_raw_fd()];
        self.tokens.iter().map(AsRawFd::as_raw_fd).chain(lives).collect()
    }

    pub fn connections(&self) -> Vec<Id> {
        self.connections.keys().copied().collect()
    }

    pub fn socket(&self, id: Id) -> Option<&Socket> {
        self.connections.get(&id).map(|c| &c.socket)
    }

    pub fn member(&mut self, id: Id) -> Option<&mut Member> {
        self.connections.get_mut(&id)?.member.as_mut()
    }

    pub fn join(&mut self, id: Id, member: Member) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.member = Some(member);
            self.joined = true;
        }
    }

    /// The connection of the peer with this number.
    pub fn owner_of(&self, peer: usize) -> Option<Id> {
        self.peers.get(peer)?.map(|entry| entry.connection)
    }

    /// Adds a connection, if its process has this user's id or root's.
    pub fn accept(&mut self, socket: OwnedFd) {
        let Ok(credentials) = socket_peercred(&socket) else { return };
        if credentials.uid != rustix::process::geteuid() && !credentials.uid.is_root() {
            return;
        }
        let process = pidfd_open(credentials.pid, PidfdFlags::empty()).ok();
        let pid = credentials.pid.as_raw_nonzero().get();
        self.last_number += 1;
        let connection = Connection { socket: socket.into(), pid, process, member: None };
        self.connections.insert(self.last_number, connection);
    }

    /// Sends a message. A member that does not receive is killed, because others wait for it. A closed connection is
    /// noticed when it is read.
    pub fn send(&mut self, id: Id, message: &FromKeeper, descriptors: &[BorrowedFd<'_>]) {
        let Some(connection) = self.connections.get(&id) else { return };
        let sent = connection.socket.send(message, descriptors);
        if connection.member.is_some() && matches!(sent, Err(Error::System(..))) {
            self.signal(id, Signal::KILL);
        }
    }

    pub fn answer(
        &mut self,
        requester: Id,
        id: u64,
        result: Result<u64, i64>,
        region: Option<RegionInfo>,
    ) {
        let result = result.map_or_else(|error| error, |value| value as i64);
        self.send(requester, &FromKeeper::Answer { id, result, region }, &[]);
    }

    pub(super) fn signal(&self, id: Id, signal: Signal) {
        if let Some(process) = self.connections.get(&id).and_then(|c| c.process.as_ref()) {
            let _ = pidfd_send_signal(process, signal);
        }
    }

    /// Receives and handles one message. Removes a connection that is closed, or that sends anything else.
    pub fn receive(&mut self, id: Id) {
        let Some(connection) = self.connections.get(&id) else { return };
        match connection.socket.receive::<ToKeeper>() {
            Ok((message, _)) => self.handle(id, message),
            Err(_) => self.disconnect(id),
        }
    }

    pub fn handle(&mut self, id: Id, message: ToKeeper) {
        let on_behalf_of = match message {
            ToKeeper::Gone { peer, .. }
            | ToKeeper::Create { peer, .. }
            | ToKeeper::Open { peer, .. }
            | ToKeeper::Map { peer, .. }
            | ToKeeper::Unmap { peer, .. }
            | ToKeeper::Grant { peer, .. }
            | ToKeeper::Meet { peer, .. }
            | ToKeeper::Spawn { peer, .. } => Some(peer),
            _ => None,
        };
        // A connection speaks for its own peers only.
        if on_behalf_of.is_some_and(|peer| self.owner_of(peer) != Some(id)) {
            return self.disconnect(id);
        }
        match message {
            ToKeeper::Join(join) => self.welcome(id, &join),
            ToKeeper::Started => {
                if let Some(member) = self.member(id) {
                    member.running = true;
                }
            }
            ToKeeper::Spawn { id: request, peer, memory } => self.spawn(id, request, peer, memory),
            ToKeeper::Gone { peer, state } => {
                self.remove_peer(peer, if state == PEER_LEFT { PEER_LEFT } else { PEER_DEAD });
            }
            ToKeeper::Taken { serial } => {
                let index =
                    self.revocations.iter().position(|r| r.serial == serial && r.from == id);
                if let Some(index) = index {
                    let revocation = self.revocations.remove(index);
                    self.finish_revocation(revocation);
                }
            }
            ToKeeper::Leave => {
                self.remove_connection_peers(id);
                self.leaving.extend(self.connections.remove(&id));
            }
            ToKeeper::List => {
                let listing = self.listing();
                self.send(id, &FromKeeper::List(listing), &[]);
            }
            ToKeeper::Kill { peer } => self.kill(id, peer),
            ToKeeper::Map { peer, number, .. } if self.is_revoking(peer, number) => {
                self.deferred.push((id, message));
            }
            other => self.handle_region_request(id, other),
        }
    }

    /// Removes a connection; its peers are dead.
    fn disconnect(&mut self, id: Id) {
        self.remove_connection_peers(id);
        self.connections.remove(&id);
    }

    fn remove_connection_peers(&mut self, id: Id) {
        for peer in 0..MAX_PEERS {
            if self.owner_of(peer) == Some(id) {
                self.remove_peer(peer, PEER_DEAD);
            }
        }
        self.deferred.retain(|(requester, _)| *requester != id);
        self.rendezvous.retain(|waiter| waiter.requester != id);
        self.kill_requests.retain(|request| request.requester != id);
    }

    /// Gives a number to a peer, with the number's next generation.
    pub(super) fn add_peer(&mut self, peer: usize, entry: PeerEntry) {
        let generation = self.generations[peer].wrapping_add(1);
        self.generations[peer] = generation;
        self.peers[peer] = Some(entry);
        self.used |= 1 << peer;
        // Removes a token that was for the former peer of this number.
        let _ = self.tokens[peer].read();
        self.lives.set(peer, RegionPeer { state: PEER_PRESENT, generation });
    }

    /// Removes a peer: its rights end, all region headers show `state`, and all other peers are rung.
    fn remove_peer(&mut self, peer: usize, state: u32) {
        let Some(entry) = self.peers[peer].take() else { return };
        self.lives.set(peer, RegionPeer { state, generation: self.generations[peer] });
        self.regions.remove(peer, state, entry.family == peer);
        self.rendezvous.retain(|waiter| waiter.peer != peer);
        // The peer of these requests is gone.
        self.deferred.retain(
            |(_, message)| !matches!(message, ToKeeper::Map { peer: asks, .. } if *asks == peer),
        );
        let (done, left) =
            std::mem::take(&mut self.revocations).into_iter().partition(|r| r.peer == peer);
        self.revocations = left;
        for revocation in done {
            self.finish_revocation(revocation);
        }
        self.ring_others(peer);
        for request in &mut self.kill_requests {
            request.left.retain(|target| *target != (peer, entry.connection));
        }
    }

    pub fn ring_others(&self, peer: usize) {
        for (other, token) in self.tokens.iter().enumerate() {
            if other != peer && self.peers[other].is_some() {
                // The write fails only if the counter is full. Then the peer has a token.
                let _ = token.write(1);
            }
        }
    }

    /// Whether there are no peers and members left, and no connections but those that wait for the group's end.
    pub fn is_over(&self) -> bool {
        let waits = |id: &Id| self.kill_requests.iter().any(|request| request.requester == *id);
        self.connections.iter().all(|(id, c)| c.member.is_none() && waits(id))
            && self.peers.iter().all(Option::is_none)
    }

    /// Bytes of all families and of the regions that no family pays for.
    pub fn memory(&self) -> u64 {
        let entries = self.peers.iter().enumerate();
        let first = entries.filter_map(|(peer, entry)| entry.filter(|e| e.family == peer));
        let families = first.map(|entry| entry.memory);
        families.chain([self.regions.unpaid_bytes()]).fold(0, u64::saturating_add)
    }

    /// What the peers of one family have in common; `None` if there is no such peer.
    pub fn family(&self, peer: usize) -> Option<(Id, usize)> {
        self.peers.get(peer)?.map(|entry| (entry.connection, entry.family))
    }

    /// Number of peers of a peer's family, and the bytes that the spawned ones cost.
    pub fn family_use(&self, peer: usize) -> (usize, u64) {
        let entries = self.peers.iter().enumerate();
        let all = entries.filter(|(other, _)| self.are_family(peer, *other));
        all.fold((0, 0), |(count, bytes), (other, entry)| {
            let spawned = entry.filter(|entry| entry.family != other);
            (count + 1, bytes + spawned.map_or(0, |entry| peer_bytes(entry.memory)))
        })
    }

    /// A region's description for a message.
    pub fn region_info(&self, number: usize, rights: u32) -> RegionInfo {
        let Region { name, address, bytes, .. } = &self.regions[number];
        RegionInfo {
            number: number as u64,
            name: name.clone(),
            address: *address,
            bytes: *bytes,
            rights,
        }
    }
}
