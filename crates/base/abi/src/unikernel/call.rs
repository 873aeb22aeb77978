//! Calls: what a guest asks the tender for.
//!
//! The doc comment of each `ASK_*` first names its arguments in their order in [`CallBlock::arguments`].

use crate::assert_size;

/// One call and its result.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallBlock {
    /// `ASK_*`.
    pub number: u64,
    /// Arguments, in the order in which the calls name them.
    pub arguments: [u64; 6],
    /// 0 or more, or `ERROR_*`.
    pub result: i64,
}
assert_size!(CallBlock, 64);

/// `address`, `bytes`, `stream`: writes to a stream, [`STREAM_OUTPUT`] or [`STREAM_ERROR`]. The result is the number of
/// bytes written, which MAY be fewer than `bytes`, but is 0 only if `bytes` is 0.
pub const ASK_CONSOLE: u64 = 1;
/// `status`, at most [`MAX_STATUS`], `how`: ends the guest. `how` is [`EXIT_ALONE`] or [`EXIT_WITH_OWNER`], which
/// differ for a bound peer only, see "Spawning". The call returns only on an error.
pub const ASK_EXIT: u64 = 2;
/// `address`, `bytes`: ends the guest with a crash report and the status [`STATUS_PANIC`]. The bytes are the reason in
/// UTF-8, which the tender MAY truncate. The call returns only on an error.
pub const ASK_PANIC: u64 = 3;
/// `deadline`, in nanoseconds of the clock, or [`NO_DEADLINE`]: sleeps. The result is 0, or 1 if the deadline has
/// passed.
pub const ASK_PARK: u64 = 4;
/// The result is the group's clock in nanoseconds.
pub const ASK_CLOCK: u64 = 5;
/// The result is the number of nanoseconds since 1970 on the host's clock, which MAY jump.
pub const ASK_TIME_OF_DAY: u64 = 6;
/// `address`, `bytes`: fills memory with random bytes that are fit for keys; at most [`MAX_RANDOM_BYTES`].
pub const ASK_RANDOM: u64 = 7;
/// `address`, `bytes`, both multiples of 4096, in the heap: gives pages back to the host. They read as zero afterwards.
pub const ASK_DISCARD: u64 = 8;
/// `entry`, `argument`, `stack`, `bytes`, `bound`: starts a peer that shares this peer's image, heap and stacks, see
/// "Spawning". The result is the peer's number plus 2^32 times its generation modulo 2^31.
///
/// If `bound` is not 0, it is 1 more than the number of a peer of the same family, which may be the caller; the new
/// peer is bound to that peer.
///
/// Errors: [`ERROR_ADDRESS`] if entry or stack break the rules; [`ERROR_NAME`] if no peer has the number in `bound`,
/// [`ERROR_RIGHT`] if that peer belongs to another family; [`ERROR_UNSUPPORTED`] without
/// [`FEATURE_SPAWN`](super::FEATURE_SPAWN).
pub const ASK_SPAWN: u64 = 9;
/// `peer`, `generation`: ends a spawned peer of the same family, whatever it is doing. Its state becomes
/// [`PEER_DEAD`](super::PEER_DEAD); the call does not wait for that. The result is 0, also if this peer is already
/// gone.
///
/// Errors: [`ERROR_RIGHT`] if the peer belongs to another family or was not spawned; [`ERROR_NAME`] if it never
/// existed.
pub const ASK_END: u64 = 10;

/// `name`, `name bytes`, `bytes`, `address`: creates a region without mapping it. `bytes` is its size including the
/// header's page, a multiple of 4096. If `address` is 0, the tender chooses the address. The result is the region's
/// number. The creator owns the region and has every right to it.
///
/// Error: [`ERROR_UNSUPPORTED`] without [`FEATURE_REGIONS`](super::FEATURE_REGIONS).
pub const ASK_REGION_CREATE: u64 = 16;
/// `name`, `name bytes`, `info`: the result is the number of the region with this name that this peer was granted. The
/// tender writes a [`SharedRegion`](super::SharedRegion) to `info`; its rights are the granted rights.
pub const ASK_REGION_OPEN: u64 = 17;
/// `region`, `rights`: maps the region at its address with the rights `REGION_*`, which MUST have been granted. If the
/// region is already mapped, these rights replace the rights it had; the result is 0 also if they are the same.
pub const ASK_REGION_MAP: u64 = 18;
/// `region`: unmaps it.
pub const ASK_REGION_UNMAP: u64 = 19;
/// `region`, `peer`, `rights`: allows the peer to map the region with these rights. Only the owner may call this. A
/// peer that has the region mapped with more rights loses the mapping, as by [`ASK_REGION_REVOKE`], and MAY map it
/// again.
pub const ASK_REGION_GRANT: u64 = 20;
/// `region`, `peer`: takes all rights to the region from the peer. Only the owner may call this. If the peer has the
/// region mapped, it loses the mapping before the call returns; a guest that cannot lose the mapping is ended.
pub const ASK_REGION_REVOKE: u64 = 21;
/// `region`, `count`, `deadline`: waits until `count` peers have mapped the region, at the same time or not; the header
/// shows their present states. The result is the number of peers that have mapped it, or [`ERROR_TIMEOUT`].
pub const ASK_RENDEZVOUS: u64 = 22;

/// `device`, `info`: the tender writes a [`DeviceInfo`](super::DeviceInfo) to `info`. Error: [`ERROR_NAME`] if there is
/// no device with this number.
pub const ASK_DEVICE: u64 = 32;
/// `device`, `queue`, `entries`, `descriptor table`, `available ring`, `used ring`: starts a queue.
///
/// Errors: [`ERROR_EXISTS`] if it runs; [`ERROR_ARGUMENT`] if the number of entries is not allowed; [`ERROR_ADDRESS`]
/// if a part lies outside the heap or is not aligned as VIRTIO section 2.7 requires.
pub const ASK_QUEUE_START: u64 = 33;
/// `device`, `queue`: stops the queue, whatever its state. The call returns when the device no longer touches the
/// queue's memory. Entries that the device has not taken stay in the ring.
pub const ASK_QUEUE_STOP: u64 = 34;
/// `device`, `queue`: the result is `QUEUE_*`.
pub const ASK_QUEUE_STATE: u64 = 35;

/// The console.
pub const STREAM_OUTPUT: u64 = 0;
/// Messages that are no result; the tender's own reports go there, too.
pub const STREAM_ERROR: u64 = 1;

/// A bound peer exits, and its owner goes on.
pub const EXIT_ALONE: u64 = 0;
/// A bound peer exits, and ends its owner with the same status.
pub const EXIT_WITH_OWNER: u64 = 1;

/// A deadline that never passes.
pub const NO_DEADLINE: u64 = 0xffff_ffff_ffff_ffff;
/// Maximum bytes of one [`ASK_RANDOM`].
pub const MAX_RANDOM_BYTES: u64 = 4096;
/// Maximum status that a guest may end with. Some of them are also the tender's, see `STATUS_*`.
pub const MAX_STATUS: u64 = 255;
/// The tender's status for a guest that panicked.
pub const STATUS_PANIC: u64 = 101;
/// The tender's status for a guest that crashed.
pub const STATUS_CRASH: u64 = 120;
/// The tender's status for a guest that exceeded its time limit.
pub const STATUS_TIMEOUT: u64 = 124;

/// The call does not exist.
pub const ERROR_CALL: i64 = -1;
/// An address is not the guest's, is not aligned, or lacks the right.
pub const ERROR_ADDRESS: i64 = -2;
/// A number is out of range, or an argument that must be 0 is not.
pub const ERROR_ARGUMENT: i64 = -3;
/// No region, peer or device has this name or number.
pub const ERROR_NAME: i64 = -4;
/// It already exists, or something else occupies the addresses.
pub const ERROR_EXISTS: i64 = -5;
/// The right was not granted, or the caller is not the owner.
pub const ERROR_RIGHT: i64 = -6;
/// No room is left: regions, peers, or the host's memory.
pub const ERROR_FULL: i64 = -7;
/// The deadline has passed.
pub const ERROR_TIMEOUT: i64 = -8;
/// This backend does not support the call.
pub const ERROR_UNSUPPORTED: i64 = -9;
