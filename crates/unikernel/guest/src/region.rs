//! Regions: named memory that several peers see at the same address.

use crate::{boot, raw, Error, Result};
use core::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};
pub use kyozon_abi::unikernel::region::{PeerState, Rights};
use kyozon_abi::unikernel::*;

/// A region that this guest knows, mapped or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    shared: SharedRegion,
}

/// A region that is mapped. Copies of it are of one mapping.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    region: Region,
    rights: Rights,
}

/// Regions that were mapped at the start.
pub fn at_start() -> impl Iterator<Item = Mapped> {
    let boot = boot();
    let regions = boot.regions.iter().take(boot.region_count as usize);
    regions.map(|shared| Mapped {
        region: Region { shared: *shared },
        rights: Rights::from_bits(shared.rights),
    })
}

/// The region of this name that was mapped at the start.
pub fn find(name: &str) -> Option<Mapped> {
    at_start().find(|mapped| mapped.region.name() == name)
}

impl Region {
    /// Makes a region of so many bytes, a multiple of 4096 with the header's page, at an address, or anywhere. It is
    /// not mapped.
    pub fn create(name: &str, bytes: u64, at: Option<u64>) -> Result<Self> {
        let arguments = [name.as_ptr() as u64, name.len() as u64, bytes, at.unwrap_or(0)];
        // SAFETY: the tender reads the name.
        unsafe { raw::ask(ASK_REGION_CREATE, &arguments) }?;
        Self::open(name)
    }

    /// Finds a region that this peer was granted.
    pub fn open(name: &str) -> Result<Self> {
        let mut shared = SharedRegion::default();
        let info = &raw mut shared as u64;
        // SAFETY: the tender reads the name, and writes a structure of this type to memory of this function's.
        unsafe { raw::ask(ASK_REGION_OPEN, &[name.as_ptr() as u64, name.len() as u64, info]) }?;
        // What the tender wrote is not to be read from a register.
        // SAFETY: initialized above.
        Ok(Self { shared: unsafe { (&raw const shared).read_volatile() } })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        let name = &self.shared.name;
        let bytes = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        core::str::from_utf8(&name[..bytes]).unwrap_or("")
    }

    /// Address of its header, in every peer.
    pub fn address(&self) -> u64 {
        self.shared.address
    }

    /// Maps it.
    pub fn map(&self, rights: Rights) -> Result<Mapped> {
        // SAFETY: the call adds memory where this guest has none, by the rules of the interface.
        unsafe { raw::ask(ASK_REGION_MAP, &[self.shared.number, rights.bits().into()]) }?;
        Ok(Mapped { region: *self, rights })
    }

    /// Lets a peer map it.
    pub fn grant(&self, peer: usize, rights: Rights) -> Result<()> {
        let arguments = [self.shared.number, peer as u64, rights.bits().into()];
        // SAFETY: the call touches no memory of this guest's, but where it takes its own right to write away: nobody
        // has a reference to words of a region that is not shared.
        unsafe { raw::ask(ASK_REGION_GRANT, &arguments) }.map(drop)
    }

    /// Takes a peer's rights away, and the mapping if it has one. It is gone on return.
    pub fn revoke(&self, peer: usize) -> Result<()> {
        if peer == crate::me() {
            // Its references would lead nowhere: that is what unmap is for.
            return Err(Error::Argument);
        }
        // SAFETY: the call touches no memory of this guest's.
        unsafe { raw::ask(ASK_REGION_REVOKE, &[self.shared.number, peer as u64]) }.map(drop)
    }

    /// Waits until so many peers have mapped it, some of which may be gone; how many have.
    pub fn rendezvous(&self, count: usize, deadline: Option<u64>) -> Result<usize> {
        let arguments = [self.shared.number, count as u64, deadline.unwrap_or(NO_DEADLINE)];
        // SAFETY: the call touches no memory.
        unsafe { raw::ask(ASK_RENDEZVOUS, &arguments) }.map(|came| came as usize)
    }
}

impl Mapped {
    /// The region.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// What this peer may do.
    pub fn rights(&self) -> Rights {
        self.rights
    }

    /// First byte of the data, behind the header; writable with [`Rights::Write`].
    pub fn data(&self) -> *mut u8 {
        (self.region.shared.address + REGION_HEADER_BYTES) as *mut u8
    }

    /// Bytes of data.
    pub fn bytes(&self) -> usize {
        (self.region.shared.bytes - REGION_HEADER_BYTES) as usize
    }

    /// The data as words, for those who may write.
    pub fn words(&self) -> Result<&'static [AtomicU64]> {
        if self.rights != Rights::Write {
            return Err(Error::Right);
        }
        // SAFETY: mapped, aligned, and zero or whatever peers wrote, which atomics may hold. A mapping ends by
        // `unmap`, which is unsafe, or by a peer that revokes it: then the next access ends the guest.
        Ok(unsafe { core::slice::from_raw_parts(self.data().cast(), self.bytes() / 8) })
    }

    /// A word of the data; `None` outside. For those who may read.
    pub fn load(&self, word: usize) -> Option<u64> {
        if word >= self.bytes() / 8 {
            return None;
        }
        // SAFETY: inside the data, as was checked; volatile, as peers write meanwhile. A read of 8 aligned bytes is
        // one access.
        let value = unsafe { self.data().cast::<u64>().add(word).read_volatile() };
        fence(Ordering::Acquire);
        Some(value)
    }

    /// What has become of a peer, and the generation that it is of.
    pub fn peer(&self, peer: usize) -> (PeerState, u32) {
        if peer >= MAX_PEERS {
            return (PeerState::Absent, 0);
        }
        let header = self.region.shared.address as *const RegionHeader;
        // SAFETY: the header is mapped, and its words are written by atomic stores; a relaxed load is allowed on
        // pages that cannot be written.
        let (state, generation) = unsafe {
            let peer = (&raw const (*header).peers).cast::<RegionPeer>().add(peer);
            let load =
                |word: *const u32| AtomicU32::from_ptr(word.cast_mut()).load(Ordering::Relaxed);
            (load(&raw const (*peer).state), load(&raw const (*peer).generation))
        };
        fence(Ordering::Acquire);
        (PeerState::from_word(state), generation)
    }

    /// Unmaps it.
    ///
    /// # Safety
    ///
    /// Nobody may use its words or its address any more, until it is mapped again.
    pub unsafe fn unmap(self) -> Result<Region> {
        // SAFETY: the caller's promise.
        unsafe { raw::ask(ASK_REGION_UNMAP, &[self.region.shared.number]) }?;
        Ok(self.region)
    }
}
