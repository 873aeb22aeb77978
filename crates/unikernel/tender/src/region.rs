//! Named memory that peers share: its address, each peer's rights, and each peer's mapping.

use crate::backend::Mapping;
use crate::error::{ensure, Error, Result};
use crate::layout::{LARGE_PAGE, PAGE};
use crate::memory::{block, memory_file, Block};
use crate::wire;
use kyozon_abi::unikernel::*;
use std::sync::atomic::{AtomicU32, Ordering};
use vm_memory::VolatileMemory;

/// A region.
#[derive(Debug)]
pub struct Region {
    /// Its name, unique in the group.
    pub name: String,
    /// Address of its header in every guest.
    pub address: u64,
    /// Bytes, including the header's page.
    pub bytes: u64,
    /// The memory.
    pub block: Block,
    /// The peer that created it: `None` for a region of the group, [`OWNER_GONE`] if that peer is gone.
    pub owner: Option<usize>,
    /// The family of that peer, which pays for the memory with its quota.
    pub payer: Option<usize>,
    /// Each peer's rights, `REGION_*`.
    pub granted: [u32; MAX_PEERS],
    /// Rights of each peer's present mapping, `REGION_*`; 0 if the peer has none.
    pub mapped: [u32; MAX_PEERS],
    /// Peers that have ever mapped it, one bit each.
    pub arrived: u64,
}

/// An owner that matches no peer.
pub const OWNER_GONE: usize = usize::MAX;

/// All rights.
pub const ALL: u32 = REGION_READ | REGION_WRITE;

/// These bytes as a region's name; `None` if they are not a valid one.
pub fn name(bytes: &[u8]) -> Option<&str> {
    let good = |b: &u8| b.is_ascii_alphanumeric() || b"-_.".contains(b);
    let fits = (1..=REGION_NAME_BYTES).contains(&bytes.len()) && bytes.iter().all(good);
    fits.then(|| std::str::from_utf8(bytes).ok()).flatten()
}

/// A call's argument as rights: to read, or to read and write. `None` for any other number.
pub fn rights(number: u64) -> Option<u32> {
    [REGION_READ, ALL].into_iter().find(|rights| u64::from(*rights) == number)
}

/// The address for a new region of `bytes` bytes: `at`, or the lowest free one.
///
/// # Errors
///
/// `ERROR_ARGUMENT`: the size is invalid. `ERROR_ADDRESS`: `at` is invalid. `ERROR_EXISTS`: another region lies there.
/// `ERROR_FULL`: there is no room.
pub fn place(regions: &[Region], bytes: u64, at: Option<u64>) -> Result<u64, i64> {
    let end = |base: u64| base.checked_add(bytes).filter(|end| *end <= REGION_END);
    if !bytes.is_multiple_of(PAGE) || !(2 * PAGE..=REGION_END - REGION_BASE).contains(&bytes) {
        return Err(ERROR_ARGUMENT);
    }
    let free = |base: u64| {
        let apart = |r: &Region| base + bytes <= r.address || r.address + r.bytes <= base;
        end(base).is_some() && regions.iter().all(apart)
    };
    match at {
        Some(at) if at % PAGE != 0 || at < REGION_BASE || end(at).is_none() => Err(ERROR_ADDRESS),
        Some(at) => {
            if free(at) {
                Ok(at)
            } else {
                Err(ERROR_EXISTS)
            }
        }
        None => {
            let ends = regions.iter().map(|r| (r.address + r.bytes).next_multiple_of(LARGE_PAGE));
            let mut bases: Vec<_> = ends.chain([REGION_AUTO_BASE]).collect();
            bases.sort_unstable();
            let found = bases.into_iter().find(|b| *b >= REGION_AUTO_BASE && free(*b));
            found.ok_or(ERROR_FULL)
        }
    }
}

/// The address for a region that an operator requests.
///
/// # Errors
///
/// The name, size or address is invalid, or in use, or there is no room; one line for the operator.
pub fn check(regions: &[Region], name: &str, bytes: u64, at: Option<u64>) -> Result<u64> {
    ensure!(
        Region,
        self::name(name.as_bytes()).is_some(),
        "{name:?} is not a region name: use 1 to {REGION_NAME_BYTES} letters, digits, '-', '_' or '.'"
    );
    ensure!(
        Region,
        regions.iter().all(|r| r.name != name),
        "the region {name} is named twice: name each region once"
    );
    ensure!(
        Region,
        regions.len() < MAX_REGIONS,
        "there are more than {MAX_REGIONS} regions: request fewer"
    );
    place(regions, bytes, at).map_err(|error| {
        let range = format!("{REGION_BASE:#x}..{REGION_END:#x}");
        match error {
            ERROR_EXISTS => Error::Region(format!("the region {name} overlaps another: choose another address")),
            ERROR_ARGUMENT => {
                Error::Region(format!("the region {name} has an invalid size: use a multiple of 4K, at least 8K"))
            }
            ERROR_FULL => {
                Error::Region(format!("there is no room for the region {name} in {range}: request a smaller one"))
            }
            _ => Error::Region(format!(
                "the region {name} is not in {range}, or not at a multiple of 4K: choose another address"
            )),
        }
    })
}

impl Region {
    /// Makes a region that no peer has mapped, with its memory and header. With `file`, other processes can map it.
    pub fn new(
        name: &str,
        address: u64,
        bytes: u64,
        owner: Option<usize>,
        file: bool,
    ) -> Result<Self> {
        let file = file.then(|| memory_file(c"kyozon-region", bytes)).transpose()?;
        let block = block(bytes, file)?;
        let mut granted = [0; MAX_PEERS];
        if let Some(owner) = owner {
            granted[owner] = ALL;
        }
        let mut padded = [0; REGION_NAME_BYTES];
        padded[..name.len()].copy_from_slice(name.as_bytes());
        let header = RegionHeader {
            magic: REGION_MAGIC,
            version: UNIKERNEL_VERSION,
            generation: 1,
            name: padded,
            address,
            bytes,
            peers: [RegionPeer::default(); MAX_PEERS],
            reserved: [0; 440],
        };
        wire::put_header(&block, header)?;
        let mapped = [0; MAX_PEERS];
        let (name, payer) = (name.to_owned(), owner);
        Ok(Self { name, address, bytes, block, owner, payer, granted, mapped, arrived: 0 })
    }

    /// The backend's description of a mapping with these rights.
    pub fn mapping(&self, number: usize, rights: u32) -> Mapping {
        Mapping {
            number,
            address: self.address,
            bytes: self.bytes,
            write: rights & REGION_WRITE != 0,
            block: self.block.clone(),
        }
    }

    /// The guest's description of the region.
    pub fn shared(&self, number: usize, rights: u32) -> SharedRegion {
        let mut name = [0; REGION_NAME_BYTES];
        name[..self.name.len()].copy_from_slice(self.name.as_bytes());
        let (address, bytes) = (self.address, self.bytes);
        SharedRegion { name, address, bytes, rights, generation: 1, number: number as u64 }
    }

    fn word(&self, peer: usize, field: usize) -> Option<&AtomicU32> {
        let at = std::mem::offset_of!(RegionHeader, peers) + peer * size_of::<RegionPeer>() + field;
        self.block.get_atomic_ref::<AtomicU32>(at).ok()
    }

    /// Writes a peer's state into the header. A peer that arrives first gets the next generation, so that a reader that
    /// sees the peer present sees the right generation.
    pub fn set_state(&self, peer: usize, state: u32) {
        if let (PEER_PRESENT, Some(generation)) = (state, self.word(peer, 4)) {
            generation.fetch_add(1, Ordering::Release);
        }
        if let Some(word) = self.word(peer, 0) {
            word.store(state, Ordering::Release);
        }
    }

    /// A peer's state and generation in the header.
    pub fn state_of(&self, peer: usize) -> (u32, u32) {
        let load = |field| self.word(peer, field).map_or(0, |w| w.load(Ordering::Acquire));
        (load(0), load(4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_do_not_overlap() {
        let mut all = Vec::new();
        for _ in 0..3 {
            let at = place(&all, 3 << 20, None).unwrap();
            all.push(Region::new("a", at, 3 << 20, None, false).unwrap());
        }
        let bases: Vec<_> = all.iter().map(|r| r.address).collect();
        assert_eq!(bases, [0, 4 << 20, 8 << 20].map(|o| REGION_AUTO_BASE + o));
        all.remove(1);
        assert_eq!(place(&all, PAGE * 2, None), Ok(REGION_AUTO_BASE + (4 << 20)));
        let inside = REGION_AUTO_BASE + PAGE;
        assert_eq!(place(&all, PAGE * 2, Some(inside)), Err(ERROR_EXISTS));
        assert_eq!(place(&all, PAGE * 2, Some(REGION_BASE)), Ok(REGION_BASE));
        for at in [REGION_BASE - PAGE, REGION_END - PAGE, 1, u64::MAX - 4095] {
            assert_eq!(place(&all, PAGE * 2, Some(at)), Err(ERROR_ADDRESS), "{at:#x}");
        }
        for bytes in [0, PAGE, PAGE * 3 + 1, !4095] {
            assert_eq!(place(&all, bytes, None), Err(ERROR_ARGUMENT), "{bytes:#x}");
        }
    }

    #[test]
    fn each_arrival_has_the_next_generation() {
        let region = Region::new("a", REGION_BASE, 2 * PAGE, Some(3), true).unwrap();
        assert_eq!((region.granted[3], region.granted[0]), (ALL, 0));
        assert_eq!(region.state_of(3), (PEER_ABSENT, 0));
        region.set_state(3, PEER_PRESENT);
        assert_eq!(region.state_of(3), (PEER_PRESENT, 1));
        region.set_state(3, PEER_DEAD);
        assert_eq!(region.state_of(3), (PEER_DEAD, 1));
        region.set_state(3, PEER_PRESENT);
        assert_eq!((region.state_of(3), region.state_of(2)), ((PEER_PRESENT, 2), (PEER_ABSENT, 0)));
    }

    #[test]
    fn names_and_rights_are_checked() {
        assert_eq!(name(b"board-1.x_Y"), Some("board-1.x_Y"));
        for bad in [&b""[..], b"a b", b"\xff", &[b'a'; 33]] {
            assert_eq!(name(bad), None);
        }
        assert_eq!((rights(1), rights(3)), (Some(1), Some(3)));
        assert_eq!((rights(0), rights(2), rights(1 << 32 | 1)), (None, None, None));
    }
}
