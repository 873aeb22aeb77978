//! Regions that a host program has mapped, and the group as its primitives see it through them.

use super::Host;
use crate::error::Context;
use crate::message::RegionInfo;
use crate::{Error, Result};
use kyozon_abi::unikernel::region::{PeerState, Rights};
use kyozon_abi::unikernel::*;
use kyozon_channel::border::Region;
use kyozon_channel::park::{Life, Park, Peer, Peers};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::{fence, AtomicU32, Ordering};

/// Checks of a lock before a thread sleeps, as in guests: they take longer than a wake-up.
const SPINS: u32 = 8000;

/// A region's mapping.
#[derive(Debug)]
pub(super) struct Mapping {
    pub known: RegionInfo,
    base: *mut c_void,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[allow(unsafe_code)]
        // SAFETY: the mapping is this value's, and its users borrow the host that owns it.
        let _ = unsafe { munmap(self.base, self.known.bytes as usize) };
    }
}

/// A region that a host program has mapped.
#[derive(Clone, Debug)]
pub struct Mapped<'a> {
    pub(super) host: &'a Host,
    pub(super) mapping: Rc<Mapping>,
    /// Not `Send`: the peer is the thread that joined.
    pub(super) here: PhantomData<*const ()>,
}

impl Mapping {
    /// Maps a region at its address.
    pub fn new(known: RegionInfo, file: &OwnedFd) -> Result<Self> {
        let write = known.rights & REGION_WRITE != 0;
        let inside = (REGION_BASE..REGION_END).contains(&known.address)
            && known.bytes >= 2 * REGION_HEADER_BYTES
            && known.bytes <= REGION_END - known.address;
        if !inside {
            return Err(Error::Gone);
        }
        let prot = if write { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        let flags = MapFlags::SHARED | MapFlags::FIXED_NOREPLACE | MapFlags::NORESERVE;
        let (address, bytes) = (known.address as *mut c_void, known.bytes as usize);
        #[allow(unsafe_code)]
        // SAFETY: the mapping replaces none (`FIXED_NOREPLACE`). The file is sealed, so no process can shrink it.
        let base = unsafe { mmap(address, bytes, prot, flags, file, 0) };
        Ok(Self { base: base.context("map a region at its address")?, known })
    }
}

impl<'a> Mapped<'a> {
    /// Address of the region's header, the same in every peer.
    pub fn address(&self) -> u64 {
        self.mapping.known.address
    }

    /// First byte of the data, which follows the header; writable with [`Rights::Write`].
    pub fn data(&self) -> *mut u8 {
        (self.address() + REGION_HEADER_BYTES) as *mut u8
    }

    /// Bytes of data.
    pub fn bytes(&self) -> usize {
        (self.mapping.known.bytes - REGION_HEADER_BYTES) as usize
    }

    /// This program's rights.
    pub fn rights(&self) -> Rights {
        Rights::from_bits(self.mapping.known.rights)
    }

    /// The data, for the structures of `kyozon_channel`.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the region is mapped read-only.
    pub fn shared(&self) -> Result<Region<'a>> {
        if self.rights() != Rights::Write {
            let name = &self.mapping.known.name;
            return Err(Error::Refused(format!("the region {name} is mapped read-only")));
        }
        #[allow(unsafe_code)]
        // SAFETY: mapped for reading and writing as long as the host is borrowed.
        Ok(unsafe { Region::new(self.data(), self.bytes()) })
    }

    /// The state of a peer, and its generation.
    pub fn peer(&self, peer: usize) -> (PeerState, u32) {
        if peer >= MAX_PEERS {
            return (PeerState::Absent, 0);
        }
        let header = self.address() as *const RegionHeader;
        #[allow(unsafe_code)]
        // SAFETY: the header is mapped, and its words are written by atomic stores; a relaxed load is allowed on
        // read-only pages.
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
        let Host { number, generation, .. } = *self.host;
        // `Host::join_at` has checked that the number is below 64.
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
        let number = usize::from(number);
        match self.host.lives.life(number) {
            Life::Alive(_) if number != self.host.number && self.host.orphan.get() => Life::Dead,
            // A peer that has lost the region never releases its locks there.
            Life::Alive(_) if matches!(self.peer(number).0, PeerState::Left | PeerState::Dead) => {
                Life::Dead
            }
            life => life,
        }
    }
}
