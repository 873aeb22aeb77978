//! The boot block.

use super::{Area, SharedRegion, MAX_REGIONS};
use crate::assert_size;

/// [`GuestBoot::magic`], "KYOZUNI" in memory.
pub const BOOT_MAGIC: u64 = 0x49_4e_55_5a_4f_59_4b;

/// [`GuestBoot::backend`]: a virtual machine.
pub const BACKEND_KVM: u32 = 1;
/// [`GuestBoot::backend`]: a confined process.
pub const BACKEND_PROCESS: u32 = 2;

/// [`GuestBoot::features`]: the time-stamp counter is a clock, see "Time".
pub const FEATURE_TSC: u64 = 1;
/// [`GuestBoot::features`]: AVX and AVX2 with their registers.
pub const FEATURE_AVX2: u64 = 2;
/// [`GuestBoot::features`]: the instructions `rdfsbase`, `wrfsbase`, `rdgsbase` and `wrgsbase`.
pub const FEATURE_FSGSBASE: u64 = 4;
/// [`GuestBoot::features`]: [`ASK_SPAWN`](super::ASK_SPAWN) and [`ASK_END`](super::ASK_END).
pub const FEATURE_SPAWN: u64 = 8;
/// [`GuestBoot::features`]: regions can be created, mapped and revoked while the guest runs.
pub const FEATURE_REGIONS: u64 = 16;

/// The information that a guest gets at its first instruction. It lies in a page that the guest can only read.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuestBoot {
    /// [`BOOT_MAGIC`].
    pub magic: u64,
    /// [`UNIKERNEL_VERSION`](super::UNIKERNEL_VERSION).
    pub version: u32,
    /// `BACKEND_*`. A guest SHOULD NOT depend on it.
    pub backend: u32,
    /// `FEATURE_*`. A guest ignores unknown bits.
    pub features: u64,
    /// Number of this peer in its group.
    pub peer: u32,
    /// Number of peers in the group when this guest starts; their numbers are 0..`peers`. If other commands can join
    /// the group, some of them may be gone and others may follow: a region's header shows their states.
    pub peers: u32,
    /// `extern "C" fn()`: carries out the call in the call block.
    pub hypercall: u64,
    /// `extern "C" fn(number: u32)`: gives a peer its token or, from [`QUEUE_DOORBELL`](super::QUEUE_DOORBELL) on,
    /// announces entries in a queue to its device. A number without a peer or queue has no effect.
    pub doorbell: u64,
    /// Address of this peer's [`CallBlock`](super::CallBlock).
    pub call: u64,
    /// The `fs` base at the first instruction.
    pub thread: u64,
    /// From the first page of the image to the end of its last.
    pub image: Area,
    /// The stack. The pages directly below and above are not mapped.
    pub stack: Area,
    /// Thread-local data and the word after it.
    pub tls: Area,
    /// The heap, zero at the start.
    pub heap: Area,
    /// Time-stamp counter ticks per millisecond.
    pub tsc_khz: u64,
    /// Difference, modulo 2^64, to add to the counter that the guest reads to get the host's counter.
    pub tsc_offset: u64,
    /// The host's counter at the moment when the group's clock showed `clock_ns`.
    pub clock_tsc: u64,
    /// The group's clock at `clock_tsc`, in nanoseconds.
    pub clock_ns: u64,
    /// Nanoseconds per tick of the counter, times 2^32.
    pub clock_scale: u64,
    /// The arguments, and then the environment: strings, each with a zero byte at its end, one after the other.
    pub arguments: Area,
    /// Number of arguments.
    pub argument_count: u64,
    /// Number of valid entries in `regions`.
    pub region_count: u64,
    /// Regions that are mapped at the start.
    pub regions: [SharedRegion; MAX_REGIONS],
    /// The argument of [`ASK_SPAWN`](super::ASK_SPAWN); 0 in an initial guest.
    pub argument: u64,
    /// Address of [`MAX_PEERS`](super::MAX_PEERS) entries of type [`RegionPeer`](super::RegionPeer), by number, which
    /// the guest can only read: the states of the group's peers. [`PEER_ABSENT`](super::PEER_ABSENT) with generation 0
    /// is a number that no peer has had.
    ///
    /// The table shows all peers of the group, also those of other commands and host programs. A region's header shows
    /// who has mapped it, with generations of its own: there each arrival counts.
    ///
    /// A word of 32 bits follows the table: how many of its peers became [`PEER_DEAD`](super::PEER_DEAD) so far, modulo
    /// 2^32. It changes before the other peers get their tokens. A peer that died may have left a sign that it waits
    /// for something, and the next peer with its number cannot be told from it.
    pub peer_table: u64,
    /// Generation of this peer in the table; the first peer of a number has 1.
    pub generation: u32,
    /// Maximum number of peers that the group can have at once. Their numbers are any below
    /// [`MAX_PEERS`](super::MAX_PEERS).
    pub limit: u32,
    /// The program, from its first page to the end of its last; empty without one.
    pub program: Area,
    /// Address of the program's first instruction; 0 without one.
    pub program_entry: u64,
    /// Number of the host's CPUs that the group may use, at least 1.
    pub cpus: u32,
    /// Number of strings of the environment, which follow the arguments in the same area.
    pub environment_count: u32,
}
assert_size!(GuestBoot, 256 + 64 * MAX_REGIONS);
