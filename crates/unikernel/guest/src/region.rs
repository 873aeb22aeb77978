//! Regions: named memory that several peers see at the same address.
//!
//! A [`Mapped`] region is also a group for `kyozon_channel`'s primitives in it. It knows what [`Vm`] knows, and also
//! which peers have lost the region: they never release its locks.

mod words;

pub use words::{Word, Words};

use crate::vm::Vm;
use crate::{boot, raw, Error, Result};
use core::marker::PhantomData;
use core::sync::atomic::{fence, AtomicU32, Ordering};
pub use kyozon_abi::unikernel::region::{PeerState, Rights};
use kyozon_abi::unikernel::*;
use kyozon_channel::park::{Life, Park, Peer, Peers};

/// A region that this guest knows, mapped or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    shared: SharedRegion,
}

/// A region that this machine has mapped. Copies share one mapping.
///
/// Another machine of the family may not have mapped the region. It finds those that it has by itself:
///
/// ```compile_fail,E0277
/// use kyozon_unikernel::{region, thread};
/// let board = region::find("board").unwrap();
/// thread::spawn(move || board.load(0));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    region: Region,
    rights: Rights,
    /// Neither `Send` nor `Sync`: the mapping is this machine's.
    here: PhantomData<*const ()>,
}

/// Regions that were mapped at the start.
pub fn at_start() -> impl Iterator<Item = Mapped> {
    let boot = boot();
    let regions = boot.regions.into_iter().take(boot.region_count as usize);
    // Captured, so that the iterator stays in this machine, too.
    let here = PhantomData;
    regions.map(move |shared| Mapped {
        region: Region { shared },
        rights: Rights::from_bits(shared.rights),
        here,
    })
}

/// The region of this name that was mapped at the start.
pub fn find(name: &str) -> Option<Mapped> {
    at_start().find(|mapped| mapped.region.name() == name)
}

impl Region {
    /// Creates a region of `bytes` bytes, a multiple of 4096 that includes the header's page, at an address or
    /// anywhere. Does not map it.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`]: this group has no such regions. [`Error::Exists`]: the name or the address is taken.
    /// [`Error::Argument`], [`Error::Address`]: the size, name or address is invalid. [`Error::Full`]: no memory.
    pub fn create(name: &str, bytes: u64, address: Option<u64>) -> Result<Self> {
        let arguments = [name.as_ptr() as u64, name.len() as u64, bytes, address.unwrap_or(0)];
        // SAFETY: the tender reads the name.
        unsafe { raw::hypercall(ASK_REGION_CREATE, &arguments) }?;
        Self::open(name)
    }

    /// Finds a region that was granted to this peer.
    ///
    /// # Errors
    ///
    /// [`Error::Name`]: there is none of this name.
    pub fn open(name: &str) -> Result<Self> {
        let mut shared = SharedRegion::default();
        let info = &raw mut shared as u64;
        // SAFETY: the tender reads the name, and writes a structure of this type to this function's variable.
        unsafe {
            raw::hypercall(ASK_REGION_OPEN, &[name.as_ptr() as u64, name.len() as u64, info])
        }?;
        // Volatile, as the compiler does not see the tender's write.
        // SAFETY: initialized above.
        Ok(Self { shared: unsafe { (&raw const shared).read_volatile() } })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        let name = &self.shared.name;
        let bytes = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        core::str::from_utf8(&name[..bytes]).unwrap_or("")
    }

    /// Address of the region's header, the same in every peer.
    pub fn address(&self) -> u64 {
        self.shared.address
    }

    /// Maps the region.
    ///
    /// # Errors
    ///
    /// [`Error::Right`]: these rights were not granted. [`Error::Name`]: the region was revoked.
    pub fn map(&self, rights: Rights) -> Result<Mapped> {
        // SAFETY: by the rules of the interface, the call maps memory only at addresses where this guest has none.
        unsafe { raw::hypercall(ASK_REGION_MAP, &[self.shared.number, rights.bits().into()]) }?;
        Ok(Mapped { region: *self, rights, here: PhantomData })
    }

    /// Lets a peer map the region.
    ///
    /// # Errors
    ///
    /// [`Error::Right`]: this peer is not the region's owner.
    pub fn grant(&self, peer: usize, rights: Rights) -> Result<()> {
        let arguments = [self.shared.number, peer as u64, rights.bits().into()];
        // SAFETY: the call touches no memory of this guest, except that it may remove its own right to write: no
        // code has a reference to the words of a region that is not shared.
        unsafe { raw::hypercall(ASK_REGION_GRANT, &arguments) }.map(drop)
    }

    /// Takes a peer's rights away. On return the peer's mapping, if there was one, is gone.
    ///
    /// # Errors
    ///
    /// [`Error::Right`]: this peer is not the region's owner. [`Error::Argument`]: the peer is this one.
    pub fn revoke(&self, peer: usize) -> Result<()> {
        if peer == crate::me() {
            // References to the region would dangle. `Mapped::unmap`, which is unsafe, does this.
            return Err(Error::Argument);
        }
        // SAFETY: the call touches no memory of this guest.
        unsafe { raw::hypercall(ASK_REGION_REVOKE, &[self.shared.number, peer as u64]) }.map(drop)
    }

    /// Waits until `count` peers have mapped the region, some of which may be gone. Returns how many have.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`]: the deadline has passed. [`Error::Argument`]: the group cannot have so many peers.
    pub fn rendezvous(&self, count: usize, deadline: Option<u64>) -> Result<usize> {
        let arguments = [self.shared.number, count as u64, deadline.unwrap_or(NO_DEADLINE)];
        // SAFETY: the call touches no memory.
        unsafe { raw::hypercall(ASK_RENDEZVOUS, &arguments) }.map(|came| came as usize)
    }
}

impl Mapped {
    /// The region.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// This peer's rights.
    pub fn rights(&self) -> Rights {
        self.rights
    }

    /// First byte of the data, which follows the header; writable with [`Rights::Write`].
    pub fn data(&self) -> *mut u8 {
        (self.region.shared.address + REGION_HEADER_BYTES) as *mut u8
    }

    /// Bytes of data.
    pub fn bytes(&self) -> usize {
        (self.region.shared.bytes - REGION_HEADER_BYTES) as usize
    }

    /// The data as words.
    ///
    /// # Errors
    ///
    /// [`Error::Right`] if the region is mapped read-only.
    pub fn words(&self) -> Result<Words> {
        if self.rights != Rights::Write {
            return Err(Error::Right);
        }
        // SAFETY: mapped and aligned; atomics may hold any value that peers write. The mapping ends by `unmap`, which
        // is unsafe, or when a peer revokes it: then the next access ends the guest.
        Ok(unsafe { Words::new(self.data().cast(), self.bytes() / 8) })
    }

    /// Loads a word of the data, also from a read-only mapping; `None` if it is outside.
    pub fn load(&self, word: usize) -> Option<u64> {
        if word >= self.bytes() / 8 {
            return None;
        }
        // SAFETY: the index was checked; volatile, as peers write meanwhile. A read of 8 aligned bytes is one access.
        let value = unsafe { self.data().cast::<u64>().add(word).read_volatile() };
        fence(Ordering::Acquire);
        Some(value)
    }

    /// The state of a peer, and its generation.
    pub fn peer(&self, peer: usize) -> (PeerState, u32) {
        if peer >= MAX_PEERS {
            return (PeerState::Absent, 0);
        }
        let header = self.region.shared.address as *const RegionHeader;
        // SAFETY: the header is mapped, and its words are written by atomic stores; a relaxed load is allowed on
        // read-only pages.
        let (state, generation) = unsafe {
            let peer = (&raw const (*header).peers).cast::<RegionPeer>().add(peer);
            let load =
                |word: *const u32| AtomicU32::from_ptr(word.cast_mut()).load(Ordering::Relaxed);
            (load(&raw const (*peer).state), load(&raw const (*peer).generation))
        };
        fence(Ordering::Acquire);
        (PeerState::from_word(state), generation)
    }

    /// Unmaps the region.
    ///
    /// # Errors
    ///
    /// [`Error::Name`]: the region was revoked.
    ///
    /// # Safety
    ///
    /// No code of this guest may use its words or its address until it is mapped again.
    pub unsafe fn unmap(self) -> Result<Region> {
        // SAFETY: the caller's promise.
        unsafe { raw::hypercall(ASK_REGION_UNMAP, &[self.region.shared.number]) }?;
        Ok(self.region)
    }
}

// The heartbeat stays the default one: a peer that only leaves the region wakes nobody.
impl Park for Mapped {
    fn me(&self) -> Peer {
        Vm.me()
    }

    fn now(&self) -> u64 {
        Vm.now()
    }

    fn park(&self, deadline: Option<u64>) {
        Vm.park(deadline);
    }

    fn unpark(&self, number: u8) {
        Vm.unpark(number);
    }

    fn spins(&self) -> u32 {
        Vm.spins()
    }
}

impl Peers for Mapped {
    fn life(&self, number: u8) -> Life {
        match Vm.life(number) {
            Life::Alive(_)
                if matches!(self.peer(number.into()).0, PeerState::Left | PeerState::Dead) =>
            {
                Life::Dead
            }
            life => life,
        }
    }
}
