//! Connections, their peers, and requests that wait for something.

use crate::error::{Context, Result};
use crate::region::{Region, NOBODY};
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
use std::time::{Duration, Instant};
use vmm_sys_util::eventfd::EventFd;

/// How long a tender may take to unmap a region. Then it is killed.
const PATIENCE: Duration = Duration::from_secs(2);

/// A connection.
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
    /// Bytes of each of its guests that were there at the start.
    pub memory: u64,
    pub running: bool,
}

/// The peer that has a number.
#[derive(Clone, Copy)]
pub(super) struct PeerEntry {
    /// Whose peer it is.
    pub of: Id,
    /// The guest that was there at the start with whose end it ends; its own number, where it was there.
    pub family: usize,
    /// Bytes of its own.
    pub memory: u64,
    pub since: Instant,
}

impl Member {
    /// Whether it is a host program: regions cannot be taken out of its memory.
    pub fn is_host(&self) -> bool {
        self.backend == "host"
    }

    /// Whether its mappings can be taken away while it runs.
    fn can_lose(&self) -> bool {
        self.backend == "kvm"
    }
}

/// A peer that has to lose a region before a request is answered.
struct Taking {
    asker: Id,
    id: u64,
    from: Id,
    serial: u64,
    peer: usize,
    number: usize,
    end: Instant,
}

/// A peer that waits until `count` peers have mapped a region.
struct Meeting {
    asker: Id,
    id: u64,
    peer: usize,
    number: usize,
    count: u64,
}

/// A request that waits until peers have ended.
pub(super) struct Killing {
    pub asker: Id,
    pub left: Vec<(usize, Id)>,
    /// Their connections: one without peers is about to leave.
    pub members: Vec<Id>,
    pub count: usize,
}

/// A group.
pub(super) struct State {
    pub name: String,
    pub clock: Option<Clock>,
    pub memory_limit: Option<u64>,
    pub peers_limit: usize,
    pub regions: Vec<Region>,
    /// Of each region, a descriptor that cannot write.
    pub readers: Vec<File>,
    pub tokens: Vec<EventFd>,
    /// Peers by number.
    pub peers: [Option<PeerEntry>; MAX_PEERS],
    /// Numbers that were in use at some time, a bit for each.
    pub used: u64,
    /// Those of them that the last had from its start on.
    pub spent: u64,
    /// Whether a run has joined.
    pub joined: bool,
    pub(super) connections: BTreeMap<Id, Connection>,
    /// Told to go, once it is known whether the group goes, too.
    pub(super) leaving: Vec<Connection>,
    next: Id,
    takings: Vec<Taking>,
    /// Requests that wait for the end of a taking.
    deferred: Vec<(Id, ToKeeper)>,
    meetings: Vec<Meeting>,
    pub(super) killings: Vec<Killing>,
}

impl State {
    pub fn new(name: &str) -> Result<Self> {
        let token = |_| EventFd::new(libc::EFD_NONBLOCK | libc::EFD_CLOEXEC);
        let tokens = (0..MAX_PEERS).map(token).collect::<Result<_, _>>().context("eventfd")?;
        Ok(Self {
            name: name.to_owned(),
            clock: None,
            memory_limit: None,
            peers_limit: MAX_PEERS,
            regions: Vec::new(),
            readers: Vec::new(),
            tokens,
            peers: [None; MAX_PEERS],
            used: 0,
            spent: 0,
            joined: false,
            connections: BTreeMap::new(),
            leaving: Vec::new(),
            next: 0,
            takings: Vec::new(),
            deferred: Vec::new(),
            meetings: Vec::new(),
            killings: Vec::new(),
        })
    }

    /// What must stay open.
    pub fn descriptors(&self) -> Vec<i32> {
        self.tokens.iter().map(AsRawFd::as_raw_fd).collect()
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

    /// The connection whose peer has a number.
    pub fn owner_of(&self, peer: usize) -> Option<Id> {
        self.peers.get(peer)?.map(|seat| seat.of)
    }

    /// Takes a connection of ours, or root's.
    pub fn accept(&mut self, socket: OwnedFd) {
        let Ok(who) = socket_peercred(&socket) else { return };
        if who.uid != rustix::process::geteuid() && !who.uid.is_root() {
            return;
        }
        let process = pidfd_open(who.pid, PidfdFlags::empty()).ok();
        let pid = who.pid.as_raw_nonzero().get();
        self.next += 1;
        let connection = Connection { socket: socket.into(), pid, process, member: None };
        self.connections.insert(self.next, connection);
    }

    /// Sends a message. A member that does not receive is killed: others rely on it. A closed connection is
    /// found when it is read.
    pub fn tell(&mut self, id: Id, tell: &FromKeeper, descriptors: &[BorrowedFd<'_>]) {
        let Some(connection) = self.connections.get(&id) else { return };
        let said = connection.socket.send(tell, descriptors);
        if connection.member.is_some() && matches!(said, Err(Error::System(..))) {
            self.signal(id, Signal::KILL);
        }
    }

    pub fn answer(
        &mut self,
        asker: Id,
        id: u64,
        result: Result<u64, i64>,
        region: Option<RegionInfo>,
    ) {
        let result = result.map_or_else(|error| error, |value| value as i64);
        self.tell(asker, &FromKeeper::Answer { id, result, region }, &[]);
    }

    pub(super) fn signal(&self, id: Id, signal: Signal) {
        if let Some(process) = self.connections.get(&id).and_then(|c| c.process.as_ref()) {
            let _ = pidfd_send_signal(process, signal);
        }
    }

    /// Receives one message. A connection that is closed or sends no message is removed.
    pub fn receive(&mut self, id: Id) {
        let Some(connection) = self.connections.get(&id) else { return };
        match connection.socket.receive::<ToKeeper>() {
            Ok((ask, _)) => self.carry_out(id, ask),
            Err(_) => self.out(id),
        }
    }

    fn carry_out(&mut self, id: Id, ask: ToKeeper) {
        let asks_for = match ask {
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
        if asks_for.is_some_and(|peer| self.owner_of(peer) != Some(id)) {
            return self.out(id);
        }
        match ask {
            ToKeeper::Join(join) => self.welcome(id, &join),
            ToKeeper::Started => {
                if let Some(member) = self.member(id) {
                    member.running = true;
                }
            }
            ToKeeper::Spawn { id: request, peer, memory } => self.spawn(id, request, peer, memory),
            ToKeeper::Gone { peer, state } => {
                self.gone(peer, if state == PEER_LEFT { PEER_LEFT } else { PEER_DEAD });
            }
            ToKeeper::Taken { serial } => {
                let at = self.takings.iter().position(|t| t.serial == serial && t.from == id);
                if let Some(at) = at {
                    let taking = self.takings.remove(at);
                    self.taken(taking);
                }
            }
            ToKeeper::Leave => {
                self.all_gone(id);
                self.leaving.extend(self.connections.remove(&id));
            }
            ToKeeper::List => {
                let listing = self.listing();
                self.tell(id, &FromKeeper::List(listing), &[]);
            }
            ToKeeper::Kill { peer } => self.kill(id, peer),
            ToKeeper::Map { peer, number, .. } if self.is_taking(peer, number) => {
                self.deferred.push((id, ask));
            }
            other => self.about_regions(id, other),
        }
    }

    pub fn is_taking(&self, peer: usize, number: u64) -> bool {
        self.takings.iter().any(|t| t.peer == peer && t.number as u64 == number)
    }

    /// A connection is no more. What it had is dead.
    fn out(&mut self, id: Id) {
        self.all_gone(id);
        self.connections.remove(&id);
    }

    fn all_gone(&mut self, id: Id) {
        for peer in 0..MAX_PEERS {
            if self.owner_of(peer) == Some(id) {
                self.gone(peer, PEER_DEAD);
            }
        }
        self.deferred.retain(|(asker, _)| *asker != id);
        self.meetings.retain(|meeting| meeting.asker != id);
        self.killings.retain(|killing| killing.asker != id);
    }

    /// A peer is no more: every header says so, its rights end, and everybody looks.
    fn gone(&mut self, peer: usize, state: u32) {
        let Some(seat) = self.peers[peer].take() else { return };
        for region in &mut self.regions {
            if std::mem::take(&mut region.mapped[peer]) != 0 {
                region.set_state(peer, state);
            }
            region.granted[peer] = 0;
            // What a thread made stays for its family only.
            let heir = if seat.family == peer { None } else { Some(NOBODY) };
            region.owner = if region.owner == Some(peer) { heir } else { region.owner };
            region.payer = region.payer.filter(|payer| *payer != peer);
        }
        self.meetings.retain(|meeting| meeting.peer != peer);
        // The peers that asked are gone.
        self.deferred
            .retain(|(_, ask)| !matches!(ask, ToKeeper::Map { peer: asks, .. } if *asks == peer));
        let (done, left) =
            std::mem::take(&mut self.takings).into_iter().partition(|t| t.peer == peer);
        self.takings = left;
        for taking in done {
            self.taken(taking);
        }
        self.ring_others(peer);
        for killing in &mut self.killings {
            killing.left.retain(|target| *target != (peer, seat.of));
        }
    }

    pub fn ring_others(&self, peer: usize) {
        for (other, token) in self.tokens.iter().enumerate() {
            if other != peer && self.peers[other].is_some() {
                // A counter that is full has a token.
                let _ = token.write(1);
            }
        }
    }

    /// A peer loses a region that it has mapped; then the request is answered.
    pub fn take(&mut self, asker: Id, id: u64, peer: usize, number: usize) {
        let Some(from) = self.owner_of(peer) else { return };
        self.next += 1;
        let (serial, end) = (self.next, Instant::now() + PATIENCE);
        self.takings.push(Taking { asker, id, from, serial, peer, number, end });
        match self.member(from) {
            Some(member) if member.can_lose() => {
                self.tell(from, &FromKeeper::Take { serial, peer, number: number as u64 }, &[]);
            }
            // It cannot lose it, and ends; a host program has no tender that would end it.
            Some(member) if member.is_host() => self.signal(from, Signal::KILL),
            _ => self.tell(from, &FromKeeper::Stop { peer: Some(peer) }, &[]),
        }
    }

    fn taken(&mut self, taking: Taking) {
        let Taking { asker, id, peer, number, .. } = taking;
        let region = &mut self.regions[number];
        if std::mem::take(&mut region.mapped[peer]) != 0 {
            region.set_state(peer, PEER_DEAD);
            self.ring_others(peer);
        }
        if !self.takings.iter().any(|other| (other.asker, other.id) == (asker, id)) {
            self.answer(asker, id, Ok(0), None);
        }
        let again = |(_, ask): &(Id, ToKeeper)| matches!(ask, ToKeeper::Map { peer: p, number: n, .. } if *p == peer && *n == number as u64);
        let (now, later) = std::mem::take(&mut self.deferred).into_iter().partition(again);
        self.deferred = later;
        for (asker, ask) in now {
            self.carry_out(asker, ask);
        }
    }

    /// [`ToKeeper::Meet`].
    pub fn meet(&mut self, asker: Id, id: u64, peer: usize, number: usize, count: u64) {
        // A new request of a peer replaces its former one.
        self.meetings.retain(|meeting| meeting.peer != peer);
        self.meetings.push(Meeting { asker, id, peer, number, count });
        self.met();
    }

    /// Answers the meetings that are complete.
    pub fn met(&mut self) {
        let came =
            |regions: &[Region], number: usize| u64::from(regions[number].arrived.count_ones());
        let (done, left) = std::mem::take(&mut self.meetings)
            .into_iter()
            .partition(|meeting| came(&self.regions, meeting.number) >= meeting.count);
        self.meetings = left;
        let done: Vec<Meeting> = done;
        for meeting in done {
            self.answer(meeting.asker, meeting.id, Ok(came(&self.regions, meeting.number)), None);
        }
    }

    /// How long until something is late.
    pub fn deadline(&self) -> Option<Duration> {
        let first = self.takings.iter().map(|taking| taking.end).min()?;
        Some(first.saturating_duration_since(Instant::now()))
    }

    /// Kills tenders that did not take a region away in time; their sockets hang up then.
    pub fn expire(&mut self) {
        let now = Instant::now();
        for at in 0..self.takings.len() {
            if self.takings[at].end <= now {
                self.signal(self.takings[at].from, Signal::KILL);
                self.takings[at].end = now + PATIENCE;
            }
        }
    }

    /// Whether only requests that wait for the end are left.
    pub fn is_over(&self) -> bool {
        let waits = |id: &Id| self.killings.iter().any(|killing| killing.asker == *id);
        self.connections.iter().all(|(id, c)| c.member.is_none() && waits(id))
            && self.peers.iter().all(Option::is_none)
    }

    /// Bytes of all guests and regions.
    pub fn memory(&self) -> u64 {
        let guests = self.peers.iter().flatten().map(|seat| seat.memory);
        guests.chain(self.regions.iter().map(|region| region.bytes)).fold(0, u64::saturating_add)
    }

    /// A region, as others are told of it.
    pub fn known(&self, number: usize, rights: u32) -> RegionInfo {
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
