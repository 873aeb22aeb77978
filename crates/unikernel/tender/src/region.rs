//! Named memory that peers share: its address, the peers that may map it, and those that have.

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
    /// As its creator named it.
    pub name: String,
    /// Address of its header in every guest.
    pub address: u64,
    /// Bytes with the header.
    pub bytes: u64,
    /// The memory.
    pub block: Block,
    /// The peer that made it; none for the group's own. [`NOBODY`] where that is gone.
    pub owner: Option<usize>,
    /// The family of that peer, which pays for the memory.
    pub payer: Option<usize>,
    /// `REGION_*` that each peer may have.
    pub granted: [u32; MAX_PEERS],
    /// `REGION_*` that each peer has now; 0 where it is not mapped.
    pub mapped: [u32; MAX_PEERS],
    /// Peers that have mapped it at some time, a bit for each.
    pub came: u64,
}

/// No peer's number.
pub const NOBODY: usize = usize::MAX;

/// All rights.
pub const ALL: u32 = REGION_READ | REGION_WRITE;

/// A name, where these bytes are one.
pub fn name(bytes: &[u8]) -> Option<&str> {
    let good = |b: &u8| b.is_ascii_alphanumeric() || b"-_.".contains(b);
    let fits = (1..=REGION_NAME_BYTES).contains(&bytes.len()) && bytes.iter().all(good);
    fits.then(|| std::str::from_utf8(bytes).ok()).flatten()
}

/// Rights that make sense: to read, or to read and write.
pub fn rights(number: u64) -> Option<u32> {
    [REGION_READ, ALL].into_iter().find(|rights| u64::from(*rights) == number)
}

/// Where a region of so many bytes goes among others, `at` or where there is room. `ERROR_*` where it cannot.
pub fn place(regions: &[Region], bytes: u64, at: Option<u64>) -> Result<u64, i64> {
    let end = |base: u64| base.checked_add(bytes).filter(|end| *end <= REGION_END);
    if bytes % PAGE != 0 || !(2 * PAGE..=REGION_END - REGION_BASE).contains(&bytes) {
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
            let behind = regions.iter().map(|r| (r.address + r.bytes).next_multiple_of(LARGE_PAGE));
            let mut bases: Vec<_> = behind.chain([REGION_AUTO_BASE]).collect();
            bases.sort_unstable();
            let found = bases.into_iter().find(|b| *b >= REGION_AUTO_BASE && free(*b));
            found.ok_or(ERROR_FULL)
        }
    }
}

/// Where a region that an operator asks for goes, or one line that says why it cannot be.
pub fn check(regions: &[Region], name: &str, bytes: u64, at: Option<u64>) -> Result<u64> {
    ensure!(
        Region,
        self::name(name.as_bytes()).is_some(),
        "{name:?} is no name of a region: 1 to {REGION_NAME_BYTES} letters, digits, '-', '_', '.'"
    );
    ensure!(Region, regions.iter().all(|r| r.name != name), "the region {name} is named twice");
    ensure!(Region, regions.len() < MAX_REGIONS, "more than {MAX_REGIONS} regions");
    place(regions, bytes, at).map_err(|error| {
        let range = format!("{REGION_BASE:#x}..{REGION_END:#x}");
        match error {
            ERROR_EXISTS => Error::Region(format!("the region {name} overlaps another")),
            ERROR_ARGUMENT => {
                Error::Region(format!("the region {name}: a size is a multiple of 4K, at least 8K"))
            }
            ERROR_FULL => {
                Error::Region(format!("there is no room for the region {name} in {range}"))
            }
            _ => Error::Region(format!(
                "the region {name} is not in {range}, or not at a multiple of 4K"
            )),
        }
    })
}

impl Region {
    /// Makes a region that no peer has mapped.
    pub fn new(name: &str, address: u64, bytes: u64, owner: Option<usize>) -> Result<Self> {
        let block = block(bytes, Some(memory_file(c"kyozon-region", bytes)?))?;
        let mut granted = [if owner.is_none() { ALL } else { 0 }; MAX_PEERS];
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
        Ok(Self { name, address, bytes, block, owner, payer, granted, mapped, came: 0 })
    }

    /// As a backend maps it.
    pub fn mapping(&self, number: usize, rights: u32) -> Mapping {
        Mapping {
            number,
            address: self.address,
            bytes: self.bytes,
            write: rights & REGION_WRITE != 0,
            block: self.block.clone(),
        }
    }

    /// As a guest is told of it.
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

    /// Writes what has become of a peer into the header. One that comes has a new generation first.
    pub fn set_state(&self, peer: usize, state: u32) {
        if let (PEER_PRESENT, Some(generation)) = (state, self.word(peer, 4)) {
            generation.fetch_add(1, Ordering::Release);
        }
        if let Some(word) = self.word(peer, 0) {
            word.store(state, Ordering::Release);
        }
    }

    /// State and generation of a peer, as every peer sees them.
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
            all.push(Region::new("a", at, 3 << 20, None).unwrap());
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
    fn a_peer_that_comes_again_has_another_generation() {
        let region = Region::new("a", REGION_BASE, 2 * PAGE, Some(3)).unwrap();
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
