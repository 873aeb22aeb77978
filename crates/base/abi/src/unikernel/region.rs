//! Regions: memory that several peers see at the same address.

use super::MAX_PEERS;
use crate::assert_size;

/// Maximum bytes of a region's name, which consists of letters, digits, `-`, `_` and `.`.
pub const REGION_NAME_BYTES: usize = 32;
/// [`SharedRegion::rights`]: the guest may read.
pub const REGION_READ: u32 = 1;
/// [`SharedRegion::rights`]: the guest may write.
pub const REGION_WRITE: u32 = 2;

/// A named piece of memory that several peers see at the same address.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedRegion {
    /// Name, padded with zeros.
    pub name: [u8; REGION_NAME_BYTES],
    /// Virtual address of the header, the same in every guest.
    pub address: u64,
    /// Bytes including the header, a multiple of 4096.
    pub bytes: u64,
    /// `REGION_*`.
    pub rights: u32,
    /// Number of times that a region was created under this name.
    pub generation: u32,
    /// Number of the region, for calls.
    pub number: u64,
}
assert_size!(SharedRegion, 64);

/// [`RegionHeader::magic`], "KYOZREG" in memory.
pub const REGION_MAGIC: u64 = 0x47_45_52_5a_4f_59_4b;
/// Bytes before a region's data.
pub const REGION_HEADER_BYTES: u64 = 4096;

/// [`RegionPeer::state`]: the peer never had the region mapped.
pub const PEER_ABSENT: u32 = 0;
/// [`RegionPeer::state`]: the peer has the region mapped.
pub const PEER_PRESENT: u32 = 1;
/// [`RegionPeer::state`]: the peer unmapped the region, or exited.
pub const PEER_LEFT: u32 = 2;
/// [`RegionPeer::state`]: the peer crashed, was ended, or lost its right. The locks that it held, and their data, are
/// in an unknown state.
pub const PEER_DEAD: u32 = 3;

/// The state of one peer in a region's header. The tender changes each word by an atomic store.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionPeer {
    /// `PEER_*`.
    pub state: u32,
    /// Number of peers that have had this number, so that a successor is not mistaken for its predecessor.
    pub generation: u32,
}
assert_size!(RegionPeer, 8);

/// The first page of a region.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RegionHeader {
    /// [`REGION_MAGIC`].
    pub magic: u64,
    /// [`UNIKERNEL_VERSION`](super::UNIKERNEL_VERSION).
    pub version: u32,
    /// The same as in [`SharedRegion`].
    pub generation: u32,
    /// The same as in [`SharedRegion`].
    pub name: [u8; REGION_NAME_BYTES],
    /// The same as in [`SharedRegion`].
    pub address: u64,
    /// The same as in [`SharedRegion`].
    pub bytes: u64,
    /// The peers, by number.
    pub peers: [RegionPeer; MAX_PEERS],
    /// Zero.
    pub reserved: [u64; 440],
}
assert_size!(RegionHeader, REGION_HEADER_BYTES as usize);

/// What a peer may do with a region: [`SharedRegion::rights`] for Rust programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Read.
    Read,
    /// Read and write.
    Write,
}

impl Rights {
    /// These rights as `REGION_*`.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Read => REGION_READ,
            Self::Write => REGION_READ | REGION_WRITE,
        }
    }

    /// The rights in `bits`, of `REGION_*`.
    pub const fn from_bits(bits: u32) -> Self {
        if bits & REGION_WRITE != 0 {
            Self::Write
        } else {
            Self::Read
        }
    }
}

/// The state of a peer: [`RegionPeer::state`] for Rust programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// The peer never had the region mapped.
    Absent,
    /// The peer has the region mapped.
    Present,
    /// The peer unmapped the region, or exited.
    Left,
    /// The peer crashed, was ended, or lost its right. The locks that it held, and their data, are in an unknown state.
    Dead,
}

impl PeerState {
    /// The state in `word`, of `PEER_*`. Any other value counts as [`PeerState::Absent`].
    pub const fn from_word(word: u32) -> Self {
        match word {
            PEER_PRESENT => Self::Present,
            PEER_LEFT => Self::Left,
            PEER_DEAD => Self::Dead,
            _ => Self::Absent,
        }
    }
}
