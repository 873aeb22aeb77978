//! What is asked of a group's keeper, and what it says. Both sides are of one version: another one is refused.

use crate::clock::Clock;
use serde::{Deserialize, Serialize};

/// Version of everything in this module.
pub const VERSION: u32 = 2;

/// Bytes of a message, at most.
pub const MESSAGE_BYTES: usize = 128 << 10;

/// Bytes of an image's name that are passed on, at most.
pub const IMAGE_BYTES: usize = 256;

/// A region that a joiner wants from the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// Bytes with the header; 0 where it must be there already.
    pub bytes: u64,
    /// Where, or wherever it is.
    pub at: Option<u64>,
    /// To write, too.
    pub write: bool,
}

/// What has come to join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// [`VERSION`].
    pub version: u32,
    /// What runs, for those who look.
    pub image: String,
    /// What runs it: `kvm`, `process`, or `host` for a host program.
    pub backend: String,
    /// How many peers: guests, or one host program.
    pub peers: usize,
    /// Bytes of each guest.
    pub memory: u64,
    /// The clock that the group has from then on, where it has none yet.
    pub clock: Option<Clock>,
    /// Regions.
    pub regions: Vec<Wanted>,
    /// Bytes of all guests and regions, at most: the first joiner's stands.
    pub group_memory: Option<u64>,
    /// Peers, at most: the first joiner's stands.
    pub group_peers: Option<usize>,
}

/// A region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Its number in the group.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// Address of its header in every peer.
    pub address: u64,
    /// Bytes with the header.
    pub bytes: u64,
    /// `REGION_*` of `abi::unikernel`.
    pub rights: u32,
}

/// What is asked. Requests with an `id` are answered by [`Tell::Answer`]; `peer` is who asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // arguments of `abi::unikernel`'s calls
pub enum Ask {
    /// To be peers of the group.
    Join(Join),
    /// The joiner's guests run from now on.
    Started,
    /// `ASK_SPAWN`, of a peer with so many bytes of its own. The answer is [`Tell::Seat`], or an error.
    Spawn { id: u64, peer: usize, memory: u64 },
    /// A guest has ended, or one that was to be spawned is not.
    Gone { peer: usize, state: u32 },
    /// `ASK_REGION_CREATE`.
    Create { id: u64, peer: usize, name: String, bytes: u64, at: Option<u64> },
    /// `ASK_REGION_OPEN`.
    Open { id: u64, peer: usize, name: String },
    /// `ASK_REGION_MAP`. The answer brings the memory.
    Map { id: u64, peer: usize, number: u64, rights: u32 },
    /// `ASK_REGION_UNMAP`.
    Unmap { id: u64, peer: usize, number: u64 },
    /// `ASK_REGION_GRANT`, and with rights 0 `ASK_REGION_REVOKE`.
    Grant { id: u64, peer: usize, number: u64, to: u64, rights: u32 },
    /// `ASK_RENDEZVOUS`. Who waits no longer drops the answer.
    Meet { id: u64, peer: usize, number: u64, count: u64 },
    /// What [`Tell::Take`] wanted is done.
    Taken { serial: u64 },
    /// All of the joiner's peers have ended. The answer is that the socket hangs up.
    Leave,
    /// Who is there?
    List,
    /// End a peer, or all of them. The answer is [`Tell::Ended`], once they have.
    Kill { peer: Option<usize> },
}

/// What the keeper says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tell {
    /// To [`Ask::Join`]. With it come descriptors: of all tokens, then one for each region.
    Welcome {
        /// Number of the first of the joiner's peers.
        first: usize,
        /// Highest number that a peer of the group has, and 1.
        peers: usize,
        /// Peers that the group can have at once, at most.
        limit: usize,
        /// The group's clock.
        clock: Clock,
        /// The regions that were wanted, in that order. They are granted.
        regions: Vec<Known>,
    },
    /// No, and why.
    Refused(String),
    /// 0 or more, or `ERROR_*`.
    Answer {
        /// The request's.
        id: u64,
        /// What there is to say.
        result: i64,
        /// The region that was asked for.
        region: Option<Known>,
    },
    /// To [`Ask::Spawn`]: the new peer has this number, and the regions that the peer that asked has mapped. It counts as
    /// a peer from then on, until [`Ask::Gone`].
    Seat {
        /// The request's.
        id: u64,
        /// Its number.
        peer: usize,
        /// Its regions, with its rights.
        regions: Vec<Known>,
    },
    /// A peer loses a region, at once; then [`Ask::Taken`].
    Take {
        /// For the answer.
        serial: u64,
        /// Who loses.
        peer: usize,
        /// What.
        number: u64,
    },
    /// A peer has to end, or all of the joiner's.
    Stop {
        /// Which.
        peer: Option<usize>,
    },
    /// To [`Ask::List`].
    List(Listing),
    /// To [`Ask::Kill`]: so many.
    Ended(usize),
}

/// A group, for those who look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Its name.
    pub group: String,
    /// The process that keeps it.
    pub keeper: i32,
    /// Bytes of all guests and regions.
    pub memory: u64,
    /// How many they may be.
    pub memory_limit: Option<u64>,
    /// How many peers it may have.
    pub peers_limit: usize,
    /// Its regions.
    pub regions: Vec<Known>,
    /// Its peers, by number.
    pub peers: Vec<Seen>,
}

/// A peer, for those who look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Its number.
    pub peer: usize,
    /// The process that runs it, or that it is.
    pub pid: i32,
    /// As in [`Join`].
    pub image: String,
    /// As in [`Join`].
    pub backend: String,
    /// `starting` or `running`.
    pub state: String,
    /// As in [`Join`].
    pub memory: u64,
    /// Regions that it has mapped: name and rights, `r` or `rw`.
    pub regions: Vec<(String, String)>,
    /// Milliseconds since it joined, or was spawned.
    pub age_ms: u64,
}
