//! A host program as a peer of a group.
//!
//! ```no_run
//! use kyozon_join::{Host, Rights};
//! # fn main() -> kyozon_join::Result<()> {
//! let host = Host::join("demo", &[("board", Rights::Write)])?;
//! let board = host.region("board").unwrap();
//! let ring = board.shared()?.spsc(0, 4096); // for Writer and Reader of kyozon_channel
//! # Ok(())
//! # }
//! ```
//!
//! A [`Mapped`] region is the group that `kyozon_channel`'s primitives ask for: it knows the caller's number and which
//! peers of all commands are alive. The other peers must trust a host program as they trust a tender: with the right to
//! write, it could write to the region's header, which guests cannot.
//!
//! [`Mapped`] is no `TrustedGroup`, so host programs cannot use locks that own their data: if the keeper is killed,
//! peers count as dead at once, but may run for some milliseconds more. They can use the raw locks, which report a
//! death.
//!
//! If a region is revoked, a host program that has it mapped is killed: there is no other way to unmap it.

mod lives;
mod region;

pub use kyozon_abi::unikernel::region::{PeerState, Rights};
pub use region::Mapped;

use crate::clock::Clock;
use crate::message::{FromKeeper, Join, RegionInfo, RegionRequest, ToKeeper, VERSION};
use crate::place::Place;
use crate::socket::Socket;
use crate::{Error, Result};
use kyozon_abi::unikernel::*;
use lives::Lives;
use region::Mapping;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Maximum time for an answer of the keeper.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The program as a peer of its group. Dropping it leaves the group; a program that ends before counts as dead.
#[derive(Debug)]
pub struct Host {
    socket: Socket,
    number: usize,
    generation: u32,
    lives: Lives,
    tokens: Vec<OwnedFd>,
    clock: Clock,
    regions: RefCell<Vec<Rc<Mapping>>>,
    /// `id` of the next request.
    next_id: Cell<u64>,
    /// The keeper is gone, and all other peers count as dead.
    orphan: Cell<bool>,
}

impl Host {
    /// Joins a group of this user, and maps these regions at the addresses that they have in every peer.
    ///
    /// # Errors
    ///
    /// There is no such group, it refuses the program, or a region cannot be mapped.
    pub fn join(group: &str, regions: &[(&str, Rights)]) -> Result<Self> {
        Self::join_at(&Place::find()?, group, regions)
    }

    /// [`Host::join`], for a group in another place.
    ///
    /// # Errors
    ///
    /// Those of [`Host::join`].
    pub fn join_at(place: &Place, group: &str, regions: &[(&str, Rights)]) -> Result<Self> {
        let socket = place.connect(group)?;
        let wanted = |(name, rights): &(&str, Rights)| RegionRequest {
            name: (*name).to_owned(),
            bytes: 0,
            at: None,
            write: *rights == Rights::Write,
        };
        let image = std::env::current_exe().unwrap_or_default();
        let join = Join {
            version: VERSION,
            image: image.display().to_string(),
            backend: "host".into(),
            peers: 1,
            memory: 0,
            spare: 0,
            threads: None,
            clock: None,
            regions: regions.iter().map(wanted).collect(),
            group_memory: None,
            group_peers: None,
        };
        socket.send(&ToKeeper::Join(join), &[])?;
        let (number, generations, clock, known, mut tokens) =
            match socket.receive_within(TIMEOUT)? {
                (FromKeeper::Welcome { first, generations, clock, regions, .. }, fds) => {
                    (first, generations, clock, regions, fds)
                }
                (FromKeeper::Refused(why), _) => return Err(Error::Refused(why)),
                _ => return Err(Error::Gone),
            };
        let [generation] = generations[..] else { return Err(Error::Gone) };
        if number >= MAX_PEERS || tokens.len() != MAX_PEERS + 1 + known.len() {
            return Err(Error::Gone);
        }
        let files = tokens.split_off(MAX_PEERS + 1);
        let lives = Lives::new(&tokens.pop().ok_or(Error::Gone)?)?;
        let regions = known.into_iter().zip(files).map(|(k, f)| Mapping::new(k, &f).map(Rc::new));
        let regions = RefCell::new(regions.collect::<Result<_>>()?);
        let (next_id, orphan) = (Cell::new(0), Cell::new(false));
        Ok(Self { socket, number, generation, lives, tokens, clock, regions, next_id, orphan })
    }

    /// The number of this peer in its group.
    pub fn number(&self) -> usize {
        self.number
    }

    /// A region that was mapped at the join, or by [`Host::map`]; `None` if there is none of this name.
    pub fn region(&self, name: &str) -> Option<Mapped<'_>> {
        let regions = self.regions.borrow();
        let mapping = regions.iter().find(|mapping| mapping.known.name == name)?.clone();
        Some(Mapped { host: self, mapping, here: PhantomData })
    }

    /// Maps a region that a guest has granted to this peer since it joined.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`]: the region is mapped already, or was not granted with these rights. [`Error::Gone`]: the
    /// group is over.
    pub fn map(&self, name: &str, rights: Rights) -> Result<Mapped<'_>> {
        let peer = self.number;
        if self.region(name).is_some() {
            return Err(Error::Refused(format!("the region {name} is mapped already")));
        }
        let name_of = name.to_owned();
        let (known, _) = self.ask(|id| ToKeeper::Open { id, peer, name: name_of })?;
        let (number, rights) = (known.number, rights.bits());
        let (known, files) = self.ask(|id| ToKeeper::Map { id, peer, number, rights })?;
        let mapping = Mapping::new(known, files.first().ok_or(Error::Gone)?)?;
        self.regions.borrow_mut().push(Rc::new(mapping));
        self.region(name).ok_or(Error::Gone)
    }

    /// Sends a request for a region. Returns the region that the keeper answers with.
    fn ask(&self, ask: impl FnOnce(u64) -> ToKeeper) -> Result<(RegionInfo, Vec<OwnedFd>)> {
        let request = self.next_id.replace(self.next_id.get() + 1);
        self.socket.send(&ask(request), &[])?;
        let end = Instant::now() + TIMEOUT;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.socket.receive_within(left)? {
                (FromKeeper::Answer { id, result, region }, files) if id == request => {
                    return match (result, region) {
                        (0.., Some(known)) => Ok((known, files)),
                        (ERROR_RIGHT, _) => {
                            let why = "the region was granted with fewer rights";
                            Err(Error::Refused(why.into()))
                        }
                        _ => Err(Error::Refused("no such region was granted to this peer".into())),
                    };
                }
                (other, _) => self.drop_late(&other),
            }
        }
    }

    /// Drops the answer to a request that did not wait for it. A region that the keeper counts as mapped since then is
    /// given back.
    fn drop_late(&self, message: &FromKeeper) {
        if let FromKeeper::Answer { region: Some(RegionInfo { number, .. }), .. } = *message {
            let mapped = self.regions.borrow().iter().any(|m| m.known.number == number);
            let id = self.next_id.replace(self.next_id.get() + 1);
            if !mapped {
                let _ = self.socket.send(&ToKeeper::Unmap { id, peer: self.number, number }, &[]);
            }
        }
    }

    /// Receives what the keeper has sent late. Only the end of the connection is the end of the group.
    fn receive_late(&self) {
        while !self.orphan.get() && self.socket.readable(Some(Duration::ZERO)).unwrap_or(true) {
            match self.socket.receive::<FromKeeper>() {
                Ok((message, _)) => self.drop_late(&message),
                Err(_) => self.orphan.set(true),
            }
        }
    }

    /// The group's clock, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Whether the group is over: its keeper is gone.
    pub fn is_over(&self) -> bool {
        self.receive_late();
        self.orphan.get()
    }

    /// Sleeps until this peer has its token, or until `deadline` on the group's clock. May return early.
    pub fn park(&self, deadline: Option<u64>) {
        let token = &self.tokens[self.number];
        loop {
            let mut word = [0; 8];
            match rustix::io::read(token, &mut word) {
                Err(Errno::AGAIN) => {}
                _ => return,
            }
            let left = deadline.map(|deadline| deadline.saturating_sub(self.now()));
            if left == Some(0) || self.orphan.get() {
                return;
            }
            let time = left.and_then(|left| Timespec::try_from(Duration::from_nanos(left)).ok());
            let mut fds =
                [PollFd::new(token, PollFlags::IN), PollFd::new(&self.socket, PollFlags::IN)];
            let ready = poll(&mut fds, time.as_ref());
            if ready.is_err_and(|error| error != Errno::INTR) {
                self.orphan.set(true);
            } else if !fds[1].revents().is_empty() {
                self.receive_late();
            }
        }
    }

    /// Gives a peer its token. Never waits; does nothing if there is no peer with this number.
    pub fn unpark(&self, peer: usize) {
        if let Some(token) = self.tokens.get(peer) {
            // If the counter is full, the peer has a token already.
            let _ = rustix::io::write(token, &1_u64.to_ne_bytes());
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Unmapped first, as a peer that left must not write any more.
        self.regions.borrow_mut().clear();
        let (peer, state) = (self.number, PEER_LEFT);
        let sent = self.socket.send(&ToKeeper::Gone { peer, state }, &[]);
        if sent.and_then(|()| self.socket.send(&ToKeeper::Leave, &[])).is_ok() {
            while self.socket.receive_within::<FromKeeper>(TIMEOUT).is_ok() {}
        }
    }
}

#[cfg(test)]
mod tests;
