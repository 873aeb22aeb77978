//! What words of a region mean, for those who read them in Rust: guests and host programs.

use super::{PEER_DEAD, PEER_LEFT, PEER_PRESENT, REGION_READ, REGION_WRITE};

/// What a peer may do with a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Read.
    Read,
    /// Read and write.
    Write,
}

impl Rights {
    /// As `REGION_*`.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Read => REGION_READ,
            Self::Write => REGION_READ | REGION_WRITE,
        }
    }

    /// Of `REGION_*`.
    pub const fn from_bits(bits: u32) -> Self {
        if bits & REGION_WRITE != 0 {
            Self::Write
        } else {
            Self::Read
        }
    }
}

/// What has become of a peer, as a region's header tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// It never had the region mapped.
    Absent,
    /// It has it mapped.
    Present,
    /// It unmapped it, or ended by its own will.
    Left,
    /// It crashed, was ended, or lost its right: what it held is in an unknown state.
    Dead,
}

impl PeerState {
    /// Of `PEER_*`. What is none of them is nobody.
    pub const fn from_word(word: u32) -> Self {
        match word {
            PEER_PRESENT => Self::Present,
            PEER_LEFT => Self::Left,
            PEER_DEAD => Self::Dead,
            _ => Self::Absent,
        }
    }
}
