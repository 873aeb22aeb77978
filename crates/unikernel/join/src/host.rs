//! A host program as a peer of a group.
//!
//! ```no_run
//! use kyozon_join::{Host, Rights};
//! # fn main() -> kyozon_join::Result<()> {
//! let host = Host::join("demo", &[("board", Rights::Write)])?;
//! let board = host.region("board").unwrap();
//! let ring = board.shared()?.spsc(0, 4096); // and on with kyozon_channel
//! # Ok(())
//! # }
//! ```
//!
//! A [`Mapped`] region is what `kyozon_channel`'s primitives ask: it is who one is, in this region, and who lives. A
//! host program is trusted by the others of its group as a tender is: with the right to write, it could write to the
//! header, which guests cannot.
//!
//! It is no `TrustedGroup` group, so locks that own their data are not for host programs: where the keeper is killed, peers
//! count as dead at once, and may run for some milliseconds more. The raw locks say that somebody died, and are.
//!
//! Where a region is revoked, the program that has it mapped is killed: nothing else takes memory away from it.

use crate::clock::Clock;
use crate::error::What;
use crate::message::{Ask, Join, Known, Tell, Wanted, VERSION};
use crate::place::Place;
use crate::socket::Socket;
use crate::{Error, Result};
pub use kyozon_abi::unikernel::region::{PeerState, Rights};
use kyozon_abi::unikernel::*;
use kyozon_channel::border::Region;
use kyozon_channel::park::{Life, Park, Peer, Peers};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use rustix::time::Timespec;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::{fence, AtomicU32, Ordering};
use std::time::Duration;

/// How long the keeper may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Looks before a sleep, as guests have them: longer than a wake-up takes.
const SPINS: u32 = 8000;

/// The program in its group. It leaves when this is dropped, and dies when it ends before.
#[derive(Debug)]
pub struct Host {
    socket: Socket,
    number: usize,
    tokens: Vec<OwnedFd>,
    clock: Clock,
    regions: RefCell<Vec<Rc<Memory>>>,
    /// The keeper is gone, and with it whoever was there.
    orphan: Cell<bool>,
}

/// A mapping.
#[derive(Debug)]
struct Memory {
    known: Known,
    base: *mut c_void,
}

impl Drop for Memory {
    fn drop(&mut self) {
        #[allow(unsafe_code)]
        // SAFETY: this mapping, whose users borrow the host that owns it.
        let _ = unsafe { munmap(self.base, self.known.bytes as usize) };
    }
}

/// A region of a host's, mapped.
#[derive(Clone, Debug)]
pub struct Mapped<'a> {
    host: &'a Host,
    memory: Rc<Memory>,
    /// Not to be sent: it is this thread that is the peer.
    here: PhantomData<*const ()>,
}

impl Host {
    /// Joins a group of this user's, and maps these of its regions at the addresses that they have in every peer.
    pub fn join(group: &str, regions: &[(&str, Rights)]) -> Result<Self> {
        Self::join_at(&Place::find()?, group, regions)
    }

    /// Joins a group in another place.
    pub fn join_at(place: &Place, group: &str, regions: &[(&str, Rights)]) -> Result<Self> {
        let socket = place.connect(group)?;
        let wanted = |(name, rights): &(&str, Rights)| Wanted {
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
            clock: None,
            regions: regions.iter().map(wanted).collect(),
            group_memory: None,
            group_peers: None,
        };
        socket.send(&Ask::Join(join), &[])?;
        let (number, clock, known, mut tokens) = match socket.receive_within(PATIENCE)? {
            (Tell::Welcome { first, clock, regions, .. }, fds) => (first, clock, regions, fds),
            (Tell::Refused(why), _) => return Err(Error::Refused(why)),
            _ => return Err(Error::Gone),
        };
        if number >= MAX_PEERS || tokens.len() != MAX_PEERS + known.len() {
            return Err(Error::Gone);
        }
        let files = tokens.split_off(MAX_PEERS);
        let regions = known.into_iter().zip(files).map(|(k, f)| Memory::new(k, &f).map(Rc::new));
        let regions = RefCell::new(regions.collect::<Result<_>>()?);
        Ok(Self { socket, number, tokens, clock, regions, orphan: Cell::new(false) })
    }

    /// Number of this peer in its group.
    pub fn number(&self) -> usize {
        self.number
    }

    /// A region that was named when it joined, or mapped since.
    pub fn region(&self, name: &str) -> Option<Mapped<'_>> {
        let regions = self.regions.borrow();
        let memory = regions.iter().find(|memory| memory.known.name == name)?.clone();
        Some(Mapped { host: self, memory, here: PhantomData })
    }

    /// Maps a region that a guest has granted this peer meanwhile.
    pub fn map(&self, name: &str, rights: Rights) -> Result<Mapped<'_>> {
        let (id, peer) = (0, self.number);
        if self.region(name).is_some() {
            return Err(Error::Refused(format!("the region {name} is mapped already")));
        }
        let (known, _) = self.ask(&Ask::Open { id, peer, name: name.to_owned() })?;
        let rights = rights.bits();
        let (known, files) = self.ask(&Ask::Map { id, peer, number: known.number, rights })?;
        let memory = Memory::new(known, files.first().ok_or(Error::Gone)?)?;
        self.regions.borrow_mut().push(Rc::new(memory));
        self.region(name).ok_or(Error::Gone)
    }

    /// Asks about a region.
    fn ask(&self, ask: &Ask) -> Result<(Known, Vec<OwnedFd>)> {
        self.socket.send(ask, &[])?;
        match self.socket.receive_within(PATIENCE)? {
            (Tell::Answer { result: 0.., region: Some(known), .. }, files) => Ok((known, files)),
            (Tell::Answer { result: ERROR_RIGHT, .. }, _) => {
                Err(Error::Refused("the region was granted with fewer rights".into()))
            }
            (Tell::Answer { .. }, _) => {
                Err(Error::Refused("no such region was granted to this peer".into()))
            }
            _ => Err(Error::Gone),
        }
    }

    /// Nanoseconds of the group's clock.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Whether the group is over: its keeper is gone.
    pub fn is_over(&self) -> bool {
        // It says nothing to a host program: what can be read is the end.
        if !self.orphan.get() && self.socket.readable(Some(Duration::ZERO)).unwrap_or(true) {
            self.orphan.set(true);
        }
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
            if !fds[1].revents().is_empty() || ready.is_err_and(|error| error != Errno::INTR) {
                self.orphan.set(true);
            }
        }
    }

    /// Gives a peer its token. Never waits; a number that is no peer's does nothing.
    pub fn unpark(&self, peer: usize) {
        if let Some(token) = self.tokens.get(peer) {
            // A counter that is full has a token.
            let _ = rustix::io::write(token, &1_u64.to_ne_bytes());
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Unmapped first: who is said to have left does not write any more.
        self.regions.borrow_mut().clear();
        let (peer, state) = (self.number, PEER_LEFT);
        let said = self.socket.send(&Ask::Gone { peer, state }, &[]);
        if said.and_then(|()| self.socket.send(&Ask::Leave, &[])).is_ok() {
            while self.socket.receive_within::<Tell>(PATIENCE).is_ok() {}
        }
    }
}

impl Memory {
    fn new(known: Known, file: &OwnedFd) -> Result<Self> {
        let write = known.rights & REGION_WRITE != 0;
        let inside = (REGION_BASE..REGION_END).contains(&known.address)
            && known.bytes >= 2 * REGION_HEADER_BYTES
            && known.bytes <= REGION_END - known.address;
        if !inside {
            return Err(Error::Gone);
        }
        let prot = if write { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        let flags = MapFlags::SHARED | MapFlags::FIXED_NOREPLACE | MapFlags::NORESERVE;
        let (at, bytes) = (known.address as *mut c_void, known.bytes as usize);
        #[allow(unsafe_code)]
        // SAFETY: a mapping where there is none. Nobody shrinks the file: it is sealed.
        let base = unsafe { mmap(at, bytes, prot, flags, file, 0) };
        Ok(Self { base: base.what("map a region at its address")?, known })
    }
}

impl<'a> Mapped<'a> {
    /// Address of its header, in every peer.
    pub fn address(&self) -> u64 {
        self.memory.known.address
    }

    /// First byte of the data, behind the header; writable with [`Rights::Write`].
    pub fn data(&self) -> *mut u8 {
        (self.address() + REGION_HEADER_BYTES) as *mut u8
    }

    /// Bytes of data.
    pub fn bytes(&self) -> usize {
        (self.memory.known.bytes - REGION_HEADER_BYTES) as usize
    }

    /// What this program may do.
    pub fn rights(&self) -> Rights {
        Rights::from_bits(self.memory.known.rights)
    }

    /// The data, for the channel's structures. For those who may write.
    pub fn shared(&self) -> Result<Region<'a>> {
        if self.rights() != Rights::Write {
            let name = &self.memory.known.name;
            return Err(Error::Refused(format!("the region {name} is for reading only")));
        }
        #[allow(unsafe_code)]
        // SAFETY: mapped, to read and write, as long as the host is borrowed.
        Ok(unsafe { Region::new(self.data(), self.bytes()) })
    }

    /// What has become of a peer, and the generation that it is of.
    pub fn peer(&self, peer: usize) -> (PeerState, u32) {
        if peer >= MAX_PEERS {
            return (PeerState::Absent, 0);
        }
        let header = self.address() as *const RegionHeader;
        #[allow(unsafe_code)]
        // SAFETY: the header is mapped, and its words are written by atomic stores; a relaxed load is allowed on
        // pages that cannot be written.
        let (state, generation) = unsafe {
            let peer = (&raw const (*header).peers).cast::<RegionPeer>().add(peer);
            let load =
                |word: *const u32| AtomicU32::from_ptr(word.cast_mut()).load(Ordering::Relaxed);
            (load(&raw const (*peer).state), load(&raw const (*peer).generation))
        };
        fence(Ordering::Acquire);
        let state = match state {
            PEER_PRESENT if peer != self.host.number && self.host.orphan.get() => PeerState::Dead,
            word => PeerState::from_word(word),
        };
        (state, generation)
    }
}

impl Park for Mapped<'_> {
    fn me(&self) -> Peer {
        let number = self.host.number;
        let generation = self.peer(number).1;
        // A number below 64, as was checked.
        Peer::new(number as u8, generation).unwrap_or(Peer::from_word(1 << 32).expect("peer 0"))
    }

    fn now(&self) -> u64 {
        self.host.now()
    }

    fn park(&self, deadline: Option<u64>) {
        self.host.park(deadline);
    }

    fn unpark(&self, number: u8) {
        self.host.unpark(number.into());
    }

    fn spins(&self) -> u32 {
        SPINS
    }

    fn panicking(&self) -> bool {
        std::thread::panicking()
    }
}

impl Peers for Mapped<'_> {
    fn life(&self, number: u8) -> Life {
        match self.peer(number.into()) {
            (PeerState::Absent, _) => Life::NotYet,
            (PeerState::Present, generation) => Life::Alive(generation),
            (PeerState::Left | PeerState::Dead, _) => Life::Dead,
        }
    }
}
