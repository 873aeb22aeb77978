//! Requests to a group's keeper, and its messages. Both sides must have the same version; the keeper refuses others.

use crate::clock::Clock;
use serde::{Deserialize, Serialize};

/// Version of all messages in this module.
pub const VERSION: u32 = 3;

/// Maximum bytes of a message.
pub const MESSAGE_BYTES: usize = 128 << 10;

/// Maximum bytes of an image's name that are passed on.
pub const IMAGE_BYTES: usize = 256;

/// A region that a joiner maps from the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionRequest {
    /// Its name.
    pub name: String,
    /// Bytes with the header; 0 if the region must exist already.
    pub bytes: u64,
    /// Its address; `None` for any.
    pub at: Option<u64>,
    /// Whether the joiner wants to write to it.
    pub write: bool,
}

/// A request to join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// [`VERSION`].
    pub version: u32,
    /// Name of the image or program, for `kyozon ps`.
    pub image: String,
    /// The back end that runs it: `kvm`, `process`, or `host` for a host program.
    pub backend: String,
    /// Number of peers: guests, or one host program.
    pub peers: usize,
    /// Maximum bytes of memory of each guest with its family.
    pub memory: u64,
    /// The part of it that the family can use for spawned peers and for the regions that it creates.
    pub spare: u64,
    /// Maximum number of peers of each family; by default half of the group's.
    pub threads: Option<usize>,
    /// The group's clock from then on, if it has none yet.
    pub clock: Option<Clock>,
    /// Regions that it maps from the start.
    pub regions: Vec<RegionRequest>,
    /// Maximum bytes of all guests and regions; the first joiner's value holds.
    pub group_memory: Option<u64>,
    /// Maximum number of peers; the first joiner's value holds.
    pub group_peers: Option<usize>,
}

/// A region of the group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionInfo {
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

/// A message to the keeper. The keeper answers requests with an `id` by [`FromKeeper::Answer`]; `peer` is the peer that
/// asks, or that the message is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // arguments of `abi::unikernel`'s calls
pub enum ToKeeper {
    /// Asks to join the group.
    Join(Join),
    /// Reports that the joiner's guests run from now on.
    Started,
    /// `ASK_SPAWN`, of a peer with `memory` bytes of private memory. The answer is [`FromKeeper::Seat`], or an error.
    Spawn { id: u64, peer: usize, memory: u64 },
    /// Reports that a guest has ended, or that a guest could not be spawned.
    Gone { peer: usize, state: u32 },
    /// `ASK_REGION_CREATE`.
    Create { id: u64, peer: usize, name: String, bytes: u64, at: Option<u64> },
    /// `ASK_REGION_OPEN`.
    Open { id: u64, peer: usize, name: String },
    /// `ASK_REGION_MAP`. The answer carries the memory's descriptor.
    Map { id: u64, peer: usize, number: u64, rights: u32 },
    /// `ASK_REGION_UNMAP`.
    Unmap { id: u64, peer: usize, number: u64 },
    /// `ASK_REGION_GRANT`, and with rights 0 `ASK_REGION_REVOKE`.
    Grant { id: u64, peer: usize, number: u64, to: u64, rights: u32 },
    /// `ASK_RENDEZVOUS`. A peer that no longer waits drops the answer.
    Meet { id: u64, peer: usize, number: u64, count: u64 },
    /// Reports that [`FromKeeper::Take`] was carried out.
    Taken { serial: u64 },
    /// Reports that all of the joiner's peers have ended. The keeper answers by closing the socket.
    Leave,
    /// Asks for a list of the group's peers and regions.
    List,
    /// Asks to end one peer, or all of them. The answer, once they have ended, is [`FromKeeper::Ended`].
    Kill { peer: Option<usize> },
}

/// A message of the keeper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromKeeper {
    /// The answer to [`ToKeeper::Join`]. It carries the descriptors of all tokens, of the table of peers, and of each
    /// region, in this order.
    Welcome {
        /// Number of the first of the joiner's peers.
        first: usize,
        /// Generation of each of them in the table of peers.
        generations: Vec<u32>,
        /// The highest number of a peer of the group, plus 1.
        peers: usize,
        /// Maximum number of peers at the same time.
        limit: usize,
        /// The group's clock.
        clock: Clock,
        /// The requested regions, in the same order. They are granted.
        regions: Vec<RegionInfo>,
    },
    /// A request is refused, for this reason.
    Refused(String),
    /// The answer to a request with an `id`.
    Answer {
        /// The request's `id`.
        id: u64,
        /// 0 or more, or `ERROR_*`.
        result: i64,
        /// The requested region.
        region: Option<RegionInfo>,
    },
    /// The answer to [`ToKeeper::Spawn`]: the new peer's number, and the regions that the asking peer has mapped. It
    /// counts as a peer from then on, until [`ToKeeper::Gone`].
    Seat {
        /// The request's `id`.
        id: u64,
        /// The new peer's number.
        peer: usize,
        /// Its generation in the table of peers.
        generation: u32,
        /// Its regions, with its rights.
        regions: Vec<RegionInfo>,
    },
    /// Orders the joiner to unmap a region from a peer at once, and to answer with [`ToKeeper::Taken`].
    Take {
        /// The `serial` of the answer.
        serial: u64,
        /// The peer that loses the region.
        peer: usize,
        /// The region's number.
        number: u64,
    },
    /// Orders the joiner to end one peer, or all of its peers.
    Stop {
        /// The peer; `None` for all.
        peer: Option<usize>,
    },
    /// The answer to [`ToKeeper::List`].
    List(Listing),
    /// The answer to [`ToKeeper::Kill`]: the number of peers that have ended.
    Ended(usize),
}

/// A group's state, for `kyozon ps`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Its name.
    pub group: String,
    /// Pid of its keeper.
    pub keeper: i32,
    /// Bytes of all guests and regions.
    pub memory: u64,
    /// Maximum bytes of all guests and regions.
    pub memory_limit: Option<u64>,
    /// Maximum number of peers.
    pub peers_limit: usize,
    /// Its regions.
    pub regions: Vec<RegionInfo>,
    /// Its peers, by number.
    pub peers: Vec<PeerInfo>,
}

/// A peer's state, for `kyozon ps`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerInfo {
    /// Its number.
    pub peer: usize,
    /// Pid of the tender that runs it, or of the host program.
    pub pid: i32,
    /// As in [`Join`].
    pub image: String,
    /// As in [`Join`].
    pub backend: String,
    /// `starting` or `running`.
    pub state: String,
    /// As in [`Join`].
    pub memory: u64,
    /// Regions that it has mapped: each name, and its rights, `r` or `rw`.
    pub regions: Vec<(String, String)>,
    /// Milliseconds since it joined or was spawned.
    pub age_ms: u64,
}
