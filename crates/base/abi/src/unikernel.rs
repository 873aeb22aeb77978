//! Tender on one side, guest on the other: the guest interface.
//!
//! MUST, MUST NOT and MAY are meant as in RFC 2119. A *guest* is one image in one address space with one thread of
//! execution; a *group* is up to [`MAX_PEERS`] guests and host processes that share regions, its *peers*, numbered
//! from 0. A *family* is a guest that was there at the start and all that it, and those it spawned, have spawned: one
//! image and one memory with several threads of execution, each a guest of its own.
//!
//! # The image
//!
//! 1. An image MUST be an ELF64 file for x86-64, little endian, of type `ET_EXEC`, with at most [`MAX_SEGMENTS`]
//!    loadable segments and neither an interpreter nor dynamic relocations.
//! 2. Each segment MUST lie in [`GUEST_IMAGE_BASE`]..[`GUEST_IMAGE_END`]. No two may share a page of 4096 bytes, and
//!    none may be writable and executable. The entry MUST lie in an executable segment.
//! 3. It MUST have a note of the name `Kyozon` and the type [`NOTE_VERSION`], whose 4 bytes are [`UNIKERNEL_VERSION`].
//! 4. It MAY have one `PT_TLS` segment, of at most [`MAX_TLS_BYTES`], aligned to at most 4096.
//! 5. A writable segment with the flag [`SEGMENT_PRIVATE`] is *private*, see "Spawning".
//! 6. It MUST NOT use the instructions `syscall`, `sysenter`, `int`, `hlt`, `in` and `out`, nor load segment
//!    registers: what they do differs between backends. It SHOULD take features of the processor from
//!    [`GuestBoot::features`], not from `cpuid`.
//!
//! A tender MUST refuse every other image before the first instruction, and MAY ignore sections and symbols; where
//! there are symbols, it SHOULD name functions in a crash report.
//!
//! # The first instruction
//!
//! | register | value |
//! |---|---|
//! | `rip` | the entry |
//! | `rdi` | address of the [`GuestBoot`] |
//! | `rsi` | [`GuestBoot::argument`]: 0, but in a spawned peer |
//! | `rsp` | top of the stack minus 8, so that the entry is a function of the System V ABI; the word there is 0 |
//! | `rbp` | 0 |
//! | `fs` base | [`GuestBoot::thread`], where thread-local data end and a word holds this same address |
//! | `rflags` | what a guest MUST NOT rely on, but for DF = 0 |
//!
//! The guest runs at CPL 3 in 64-bit mode, with SSE2; the x87 control word is 0x37f and `MXCSR` is 0x1f80. It MAY use
//! a red zone.
//!
//! # Memory
//!
//! Everything lies below 512 GiB. Pages that no [`Area`], region or segment covers are not there; the page at 0 and
//! those before and behind each stack never are. No page is writable and executable. Memory that no file fills is
//! zero. Reaching what is not there, or not allowed, ends the guest with a crash report.
//!
//! # Calls
//!
//! To ask the tender, a guest writes a number `ASK_*` and arguments into its [`CallBlock`] and calls
//! [`GuestBoot::hypercall`], a function of the System V ABI without arguments. The answer is in [`CallBlock::result`]: 0
//! or more, or one of `ERROR_*`. A tender MUST copy the block once, before it looks at anything in it, and MUST NOT
//! fail, wait without need, or end another guest whatever the block says. Unused arguments MUST be 0. Calls are slow
//! (microseconds, on some hosts tens of them): the data path never asks.
//!
//! Addresses in arguments are the guest's. The tender reads or writes `bytes` bytes there, all of which MUST be the
//! guest's with the right to read or write; otherwise nothing happens and the answer is [`ERROR_ADDRESS`].
//!
//! # Time
//!
//! With [`FEATURE_TSC`], the group's monotonic clock shows, in nanoseconds and with a product of 128 bits,
//!
//! ```text
//! clock_ns + (((rdtsc() + tsc_offset - clock_tsc) * clock_scale) >> 32)
//! ```
//!
//! It is the same for all peers of a group. Its rate is as exact as the tender knows the counter's, better than 0.1 %.
//! Without that feature it is read by [`ASK_CLOCK`].
//!
//! # Sleeping
//!
//! Each peer has a token. [`ASK_PARK`] sleeps until the token is there or a deadline has passed, and takes it;
//! [`GuestBoot::doorbell`] gives it, and never waits. It MAY return early. A token that was given before is not lost,
//! two are one. When a peer goes, every other peer of its group gets a token.
//!
//! # Spawning
//!
//! [`ASK_SPAWN`] adds a peer to the family of the one that asks: a thread of execution in an address space that has
//!
//! - *the same* memory at the same addresses: text, constants and data of the image, the heap, and all stacks, as they
//!   are at each moment;
//! - *its own* memory at the same addresses: boot block, call block, thread-local data, and private segments. The last
//!   two begin as the image's file has them, not as the asking peer has them. An address there means something else in
//!   each peer, so it SHOULD NOT be handed from one to another;
//! - the regions that the asking peer has mapped at that moment, with the same rights, and no grants beyond them.
//!
//! Its first instruction is `entry`, which MUST lie in an executable segment, with registers as in "The first
//! instruction": `rdi` its boot block, `rsi` the argument, `rsp` the end of its stack minus 8, `fs` base its own
//! thread-local data. Its stack is memory of the family's, which the asking peer chooses: `bytes` from `stack` on, both
//! multiples of 4096, at least [`MIN_STACK_BYTES`], in one writable piece that is not private. The first page is a
//! guard: in the spawned peer it is not there. The tender sets the word at `rsp` to 0 and touches nothing else. It MUST
//! NOT be used for anything else before the spawned peer is gone.
//!
//! The answer names the peer: its number is the lowest that is free. It comes when the peer is ready to run, which it MAY have
//! done already. A number is free where nobody has had it, or who had it was spawned and is gone; each has its own generation.
//! Where others can join the group, numbers of all that are gone are free in the end, those that were there at a start last. A
//! group has at most [`GuestBoot::limit`] peers at once: beyond, the answer is [`ERROR_FULL`], as it is where the host
//! has no room. A spawned peer counts as any other for everything: doorbell, regions, spawning.
//!
//! What became of each number stands in [`GuestBoot::peer_table`]. A spawned peer ends as every guest does: by
//! [`ASK_EXIT`], whose status nobody asks for, by [`ASK_PANIC`], by a crash, which is reported, or by [`ASK_END`]. From
//! the moment that its word is [`PEER_LEFT`] or [`PEER_DEAD`] it never touches memory again, and then every other peer
//! gets a token. Its end ends those who are bound to it, and they are gone before its word says that it is; it ends
//! nobody else, not those whom it spawned either. With the guest that was there at the start,
//! however that ends, all of its family end.
//!
//! A group can allow no more peers than a command has at its start: then [`FEATURE_SPAWN`] is not set, and the answer of
//! [`ASK_SPAWN`] is [`ERROR_UNSUPPORTED`].
//!
//! # Regions
//!
//! A region is named memory that several peers see at the same address, each with the rights that it was granted. Its
//! first page is a [`RegionHeader`], which guests can only read; data begin at the second. A region is the tender's:
//! it lives as long as its group.
//!
//! # Devices
//!
//! A guest that was there at the start MAY have devices, a spawned peer has none: those of Virtual I/O Device (VIRTIO) version 1.2, whose sections are named here. They are
//! numbered from 0; [`ASK_DEVICE`] tells of each, and that is all discovery there is. There is no transport, no reset
//! and no status: what section 2.1 has a driver negotiate is settled, as [`DeviceInfo::features`] are what the device
//! does, and a guest that cannot do with one of them MUST NOT start the device's queues. The configuration space is
//! [`DeviceInfo::config`], and never changes.
//!
//! 1. Queues are split virtqueues (section 2.7). A queue MUST have a power of two of entries, at most
//!    [`DeviceInfo::max_size`].
//! 2. Addresses are the guest's. The three parts of a queue, and all memory that its descriptors name, MUST lie in
//!    [`GuestBoot::heap`]: nothing else of the guest's is read or written.
//! 3. [`ASK_QUEUE_START`] starts a queue, whose rings MUST be empty: both indices 0. From then on the memory belongs
//!    to both sides, until [`ASK_QUEUE_STOP`] has answered or the guest ends. The device then touches none of it.
//! 4. To say that there are entries, the guest calls [`GuestBoot::doorbell`] with [`DeviceInfo::doorbell`] plus the
//!    queue's number. That never waits. All devices have `VIRTIO_F_EVENT_IDX`: the guest MUST do so where one of the new
//!    entries has the index that `avail_event` of the used ring says (section 2.7.10), of which a queue's first entry has
//!    0, and SHOULD NOT elsewhere. The device looks only after a ring, but MAY take more entries than there were then. At
//!    the receive queue of a network it looks when a frame comes: there the guest need not ring.
//! 5. To say that it gave entries back, the device gives the guest its token, as peers do, where one of them has the
//!    index that `used_event` of the available ring says (section 2.7.7). It MAY do so without need. A guest that parks
//!    MUST look at the used ring once more after it has written `used_event`, and after a full fence. Flags of both rings
//!    say nothing.
//! 6. A queue that breaks a rule ends, and nothing else: the guest gets its token, [`ASK_QUEUE_STATE`] says so, and
//!    nothing of the queue is touched any more. It MAY be stopped, and started anew. What was asked by entries that
//!    did not come back is done or not.
//! 7. A request that is whole, but makes no sense to its device, fails as the device's section says.
//!
//! A network device (section 5.1) has the receive queue as queue 0 and the transmit queue as queue 1, and is one port
//! of a network: frames of one guest go to the others, and to the host where the network has a port there, by their
//! destination address. Frames are lost where their receiver has no room. A block device (section 5.2) has queue 0.

use crate::assert_size;

pub mod region;

/// Version of everything in this module.
pub const UNIKERNEL_VERSION: u32 = 4;

// ---------------------------------------------------------------------------------------------------------------------
// The image

/// Images are linked from here on: 64 GiB.
pub const GUEST_IMAGE_BASE: u64 = 0x10_0000_0000;
/// An image ends below.
pub const GUEST_IMAGE_END: u64 = 0x10_1000_0000;
/// Loadable segments of an image, at most.
pub const MAX_SEGMENTS: usize = 16;
/// Bytes of thread-local data, at most.
pub const MAX_TLS_BYTES: u64 = 1 << 20;
/// Flag of a segment that is private: of those that ELF leaves to operating systems (`PF_MASKOS`).
pub const SEGMENT_PRIVATE: u32 = 0x10_0000;
/// Bytes of all private segments together, at most.
pub const MAX_PRIVATE_BYTES: u64 = 16 << 20;
/// Bytes of a spawned peer's stack, at least, with the guard.
pub const MIN_STACK_BYTES: u64 = 8192;
/// Type of the note, of the name `Kyozon`, that says the version.
pub const NOTE_VERSION: u32 = 1;

// ---------------------------------------------------------------------------------------------------------------------
// Where things lie. A guest MUST take addresses from its boot block; these are for images that are linked and regions
// that are placed.

/// The tender's pages: boot block, call block, door.
pub const GUEST_SYSTEM_BASE: u64 = 0xf_0000_0000;
/// Top of the stack.
pub const GUEST_STACK_TOP: u64 = 0x18_0000_0000;
/// Thread-local data.
pub const GUEST_THREAD_BASE: u64 = 0x1c_0000_0000;
/// The heap.
pub const GUEST_HEAP_BASE: u64 = 0x20_0000_0000;
/// Bytes that one guest may have, at most.
pub const GUEST_MAX_MEMORY: u64 = 0x10_0000_0000;
/// Regions lie from here on: where their creator says,
pub const REGION_BASE: u64 = 0x40_0000_0000;
/// or from here on, where the tender places them.
pub const REGION_AUTO_BASE: u64 = 0x60_0000_0000;
/// Regions end below.
pub const REGION_END: u64 = 0x70_0000_0000;

// ---------------------------------------------------------------------------------------------------------------------
// The boot block

/// Peers of a group, at most: a set of them is a word of 64 bits.
pub const MAX_PEERS: usize = 64;
/// Regions of a group, at most.
pub const MAX_REGIONS: usize = 16;

/// [`GuestBoot::magic`], "KYOZUNI" in memory.
pub const BOOT_MAGIC: u64 = 0x49_4e_55_5a_4f_59_4b;

/// [`GuestBoot::backend`]: a virtual machine.
pub const BACKEND_KVM: u32 = 1;
/// [`GuestBoot::backend`]: a confined process.
pub const BACKEND_PROCESS: u32 = 2;

/// [`GuestBoot::features`]: the time-stamp counter is a clock.
pub const FEATURE_TSC: u64 = 1;
/// [`GuestBoot::features`]: AVX and AVX2, with their registers.
pub const FEATURE_AVX2: u64 = 2;
/// [`GuestBoot::features`]: `rdfsbase`, `wrfsbase`, `rdgsbase`, `wrgsbase`.
pub const FEATURE_FSGSBASE: u64 = 4;
/// [`GuestBoot::features`]: [`ASK_SPAWN`] and [`ASK_END`].
pub const FEATURE_SPAWN: u64 = 8;
/// [`GuestBoot::features`]: regions can be created, mapped and revoked while the guest runs.
pub const FEATURE_REGIONS: u64 = 16;

/// A piece of the guest's address space.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Area {
    /// First virtual address.
    pub base: u64,
    /// Bytes.
    pub bytes: u64,
}
assert_size!(Area, 16);

/// What a guest knows at its first instruction. It lies in a page that the guest can only read.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuestBoot {
    /// [`BOOT_MAGIC`].
    pub magic: u64,
    /// [`UNIKERNEL_VERSION`].
    pub version: u32,
    /// `BACKEND_*`. A guest SHOULD NOT need it.
    pub backend: u32,
    /// `FEATURE_*`. Unknown bits mean nothing.
    pub features: u64,
    /// Number of this peer in its group.
    pub peer: u32,
    /// Peers that the group has at this guest's start: 0 to this, exclusive. Where others may join it, some of these may
    /// be gone, and more may come: a region's header tells.
    pub peers: u32,
    /// `extern "C" fn()`: makes the call in the call block.
    pub hypercall: u64,
    /// `extern "C" fn(number: u32)`: gives a peer its token, or from [`QUEUE_DOORBELL`] on tells a device that there
    /// are entries in a queue. A number that is nobody's does nothing.
    pub doorbell: u64,
    /// Address of this peer's [`CallBlock`].
    pub call: u64,
    /// The `fs` base of the first instruction.
    pub thread: u64,
    /// From the first page of the image to behind its last.
    pub image: Area,
    /// The stack; nothing is below and above.
    pub stack: Area,
    /// Thread-local data and the word behind them.
    pub tls: Area,
    /// The heap, zero at the start.
    pub heap: Area,
    /// Time-stamp counter ticks in a millisecond.
    pub tsc_khz: u64,
    /// Added to the counter that the guest reads gives the host's, modulo 2^64.
    pub tsc_offset: u64,
    /// The host's counter when the group's clock showed `clock_ns`.
    pub clock_tsc: u64,
    /// See `clock_tsc`.
    pub clock_ns: u64,
    /// Nanoseconds a tick, times 2^32.
    pub clock_scale: u64,
    /// Arguments: strings, each with a zero byte at its end, one behind the other.
    pub arguments: Area,
    /// How many there are.
    pub argument_count: u64,
    /// How many of `regions` are set.
    pub region_count: u64,
    /// Regions that are mapped at the start.
    pub regions: [SharedRegion; MAX_REGIONS],
    /// What [`ASK_SPAWN`] was given; 0 in a guest that was there at the start.
    pub argument: u64,
    /// Address of [`MAX_PEERS`] times [`RegionPeer`], by number, which the guest can only read: what became of the
    /// peers of the group. [`PEER_ABSENT`] with generation 0 is a number that nobody had. Where others may join the
    /// group, only peers of the same command are in it: of all others a region's header tells, with generations of its
    /// own.
    pub peer_table: u64,
    /// Generation of this peer in that table: the first of a number has 1.
    pub generation: u32,
    /// Peers that the group can have at once, at most. Their numbers are any below [`MAX_PEERS`].
    pub limit: u32,
}
assert_size!(GuestBoot, 224 + 64 * MAX_REGIONS);

// ---------------------------------------------------------------------------------------------------------------------
// Calls

/// What a guest asks, and the answer.
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

/// `address`, `bytes`: writes to the console. The answer is how many bytes were written, which MAY be fewer, but are
/// never none where `bytes` is not 0.
pub const ASK_CONSOLE: u64 = 1;
/// `status`, at most [`MAX_STATUS`]: the guest ends. There is no answer but an error.
pub const ASK_EXIT: u64 = 2;
/// `address`, `bytes`: the guest gives up for a reason that it says in so many bytes of UTF-8, which the tender MAY
/// cut. It ends with a crash report and the status [`STATUS_PANIC`]. There is no answer but an error.
pub const ASK_PANIC: u64 = 3;
/// `deadline`, nanoseconds of the clock, or [`NO_DEADLINE`]: sleeps. The answer is 0, or 1 where the deadline had
/// passed.
pub const ASK_PARK: u64 = 4;
/// Nanoseconds of the group's clock.
pub const ASK_CLOCK: u64 = 5;
/// Nanoseconds since 1970 by the host's clock, which MAY jump.
pub const ASK_TIME_OF_DAY: u64 = 6;
/// `address`, `bytes`: fills with random bytes that are fit for keys; at most [`MAX_RANDOM_BYTES`].
pub const ASK_RANDOM: u64 = 7;
/// `address`, `bytes`, both multiples of 4096, in the heap: gives pages back to the host. They are zero when next read.
pub const ASK_DISCARD: u64 = 8;
/// `entry`, `argument`, `stack`, `bytes`, `bound`: starts a peer that shares this peer's image, heap and stacks, as "Spawning"
/// says. The answer is its number and, times 2^32, its generation modulo 2^31; [`ERROR_ADDRESS`] where entry or stack are not as they must be. Where `bound`
/// is not 0, it is 1 more than the number of a peer of the same family, perhaps the one that asks, which the new peer
/// does not outlive; [`ERROR_NAME`] where there is none, [`ERROR_RIGHT`] where it is of another family. Without
/// [`FEATURE_SPAWN`] the answer is [`ERROR_UNSUPPORTED`].
pub const ASK_SPAWN: u64 = 9;
/// `peer`, `generation`: ends a peer of the same family that was spawned, wherever it is; its word becomes
/// [`PEER_DEAD`], which the caller does not wait for. The answer is 0, also where this very peer is gone already;
/// [`ERROR_RIGHT`] where it is of another family or was not spawned, [`ERROR_NAME`] where it never was.
pub const ASK_END: u64 = 10;

/// `name`, `name bytes`, `bytes`, `address`: makes a region of so many bytes, a multiple of 4096 with the header's
/// page, at this address, or where it is 0 at one that the tender chooses. The answer is its number. Its creator owns
/// it: it may do everything with it. The region is not mapped. Without [`FEATURE_REGIONS`] the answer is
/// [`ERROR_UNSUPPORTED`].
pub const ASK_REGION_CREATE: u64 = 16;
/// `name`, `name bytes`, `info`: the number of a region of this name that this peer was granted; the tender writes a
/// [`SharedRegion`] to `info`, whose rights are those granted.
pub const ASK_REGION_OPEN: u64 = 17;
/// `region`, `rights`: maps it at its address with `REGION_*`, which MUST be granted. The answer to a region that is
/// mapped with these rights is 0; other rights replace those it had.
pub const ASK_REGION_MAP: u64 = 18;
/// `region`: unmaps it.
pub const ASK_REGION_UNMAP: u64 = 19;
/// `region`, `peer`, `rights`: the peer may map it with these rights from now on. Only its owner may. A peer that has
/// it mapped with more rights loses the mapping, as by [`ASK_REGION_REVOKE`], and MAY map it anew.
pub const ASK_REGION_GRANT: u64 = 20;
/// `region`, `peer`: the peer has no right any more. Where it has the region mapped, it loses the mapping before the
/// answer; a guest that cannot lose it ends. Only its owner may.
pub const ASK_REGION_REVOKE: u64 = 21;
/// `region`, `count`, `deadline`: waits until so many peers have mapped it, at the same time or not: what has become
/// of them stands in the header. The answer is how many have, or [`ERROR_TIMEOUT`].
pub const ASK_RENDEZVOUS: u64 = 22;

/// `device`, `info`: the tender writes a [`DeviceInfo`] to `info`. [`ERROR_NAME`] where there are not so many.
pub const ASK_DEVICE: u64 = 32;
/// `device`, `queue`, `entries`, `descriptor table`, `available ring`, `used ring`: starts a queue. [`ERROR_EXISTS`]
/// where it runs, [`ERROR_ARGUMENT`] to a bad number of entries, [`ERROR_ADDRESS`] to a place that is outside of the
/// heap or not aligned as section 2.7 says.
pub const ASK_QUEUE_START: u64 = 33;
/// `device`, `queue`: stops it, whatever its state. The answer comes when the device touches no memory of the queue
/// any more. Entries that were not taken stay where they are.
pub const ASK_QUEUE_STOP: u64 = 34;
/// `device`, `queue`: the answer is `QUEUE_*`.
pub const ASK_QUEUE_STATE: u64 = 35;

/// A deadline that never comes.
pub const NO_DEADLINE: u64 = 0xffff_ffff_ffff_ffff;
/// Bytes of one [`ASK_RANDOM`], at most.
pub const MAX_RANDOM_BYTES: u64 = 4096;
/// Highest status that a guest may end with; those above are the tender's.
pub const MAX_STATUS: u64 = 119;
/// The tender's status for a guest that gave up.
pub const STATUS_PANIC: u64 = 101;
/// The tender's status for a guest that crashed.
pub const STATUS_CRASH: u64 = 120;
/// The tender's status for a guest whose time was over.
pub const STATUS_TIMEOUT: u64 = 124;

/// There is no such call.
pub const ERROR_CALL: i64 = -1;
/// An address is not the guest's, not aligned, or has not the right.
pub const ERROR_ADDRESS: i64 = -2;
/// A number is out of its range, or an argument that must be 0 is not.
pub const ERROR_ARGUMENT: i64 = -3;
/// There is no region or peer of this name or number.
pub const ERROR_NAME: i64 = -4;
/// There is one already, or something else lies there.
pub const ERROR_EXISTS: i64 = -5;
/// Not granted, or not the owner.
pub const ERROR_RIGHT: i64 = -6;
/// There is no room: regions, peers, the host's memory.
pub const ERROR_FULL: i64 = -7;
/// The deadline has passed.
pub const ERROR_TIMEOUT: i64 = -8;
/// This backend cannot.
pub const ERROR_UNSUPPORTED: i64 = -9;

// ---------------------------------------------------------------------------------------------------------------------
// Regions

/// Bytes of a region's name, at most; it is of letters, digits, `-`, `_` and `.`.
pub const REGION_NAME_BYTES: usize = 32;
/// [`SharedRegion::rights`]: the guest may read.
pub const REGION_READ: u32 = 1;
/// [`SharedRegion::rights`]: the guest may write.
pub const REGION_WRITE: u32 = 2;

/// A named piece of memory that several peers see at the same address.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedRegion {
    /// Name, zero-padded.
    pub name: [u8; REGION_NAME_BYTES],
    /// Virtual address of the header, the same in every guest.
    pub address: u64,
    /// Bytes with the header, a multiple of 4096.
    pub bytes: u64,
    /// `REGION_*`.
    pub rights: u32,
    /// Grows each time that the region is created anew under this name.
    pub generation: u32,
    /// Number of the region, for calls.
    pub number: u64,
}
assert_size!(SharedRegion, 64);

/// [`RegionHeader::magic`], "KYOZREG" in memory.
pub const REGION_MAGIC: u64 = 0x47_45_52_5a_4f_59_4b;
/// Bytes before a region's data.
pub const REGION_HEADER_BYTES: u64 = 4096;

/// [`RegionPeer::state`]: never had the region mapped.
pub const PEER_ABSENT: u32 = 0;
/// [`RegionPeer::state`]: has it mapped.
pub const PEER_PRESENT: u32 = 1;
/// [`RegionPeer::state`]: unmapped it, or ended by its own will.
pub const PEER_LEFT: u32 = 2;
/// [`RegionPeer::state`]: crashed, was ended, or lost its right: what it held is in an unknown state.
pub const PEER_DEAD: u32 = 3;

/// One peer, as a region's header tells of it. Both words change by atomic stores of the tender.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionPeer {
    /// `PEER_*`.
    pub state: u32,
    /// Grows by one each time that a peer of this number comes, so that a successor is not taken for its predecessor.
    pub generation: u32,
}
assert_size!(RegionPeer, 8);

/// The first page of a region.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RegionHeader {
    /// [`REGION_MAGIC`].
    pub magic: u64,
    /// [`UNIKERNEL_VERSION`].
    pub version: u32,
    /// As in [`SharedRegion`].
    pub generation: u32,
    /// As in [`SharedRegion`].
    pub name: [u8; REGION_NAME_BYTES],
    /// As in [`SharedRegion`].
    pub address: u64,
    /// As in [`SharedRegion`].
    pub bytes: u64,
    /// The peers, by number.
    pub peers: [RegionPeer; MAX_PEERS],
    /// Zero.
    pub reserved: [u64; 440],
}
assert_size!(RegionHeader, REGION_HEADER_BYTES as usize);

// ---------------------------------------------------------------------------------------------------------------------
// Devices

/// Doorbells of queues are numbered from here on.
pub const QUEUE_DOORBELL: u32 = MAX_PEERS as u32;
/// Queues of all devices of a guest, at most.
pub const MAX_QUEUES: usize = 32;
/// Bytes of a device's name, at most; it is of the same characters as a region's.
pub const DEVICE_NAME_BYTES: usize = 32;
/// Bytes of a configuration space, at most.
pub const DEVICE_CONFIG_BYTES: usize = 64;

/// [`DeviceInfo::kind`]: a network device (section 5).
pub const DEVICE_NET: u32 = 1;
/// [`DeviceInfo::kind`]: a block device (section 5).
pub const DEVICE_BLOCK: u32 = 2;

/// The answer to [`ASK_QUEUE_STATE`]: it was not started, or was stopped.
pub const QUEUE_STOPPED: u64 = 0;
/// The answer to [`ASK_QUEUE_STATE`]: the device takes entries.
pub const QUEUE_RUNNING: u64 = 1;
/// The answer to [`ASK_QUEUE_STATE`]: it broke a rule.
pub const QUEUE_FAILED: u64 = 2;

/// A device.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Name, zero-padded.
    pub name: [u8; DEVICE_NAME_BYTES],
    /// `DEVICE_*`, by the numbers of section 5.
    pub kind: u32,
    /// How many queues it has.
    pub queues: u32,
    /// Feature bits of its section and of section 6.
    pub features: u64,
    /// Number for [`GuestBoot::doorbell`] of its first queue; the others' follow.
    pub doorbell: u32,
    /// Entries of a queue, at most.
    pub max_size: u32,
    /// How much of `config` means something.
    pub config_bytes: u64,
    /// The configuration space.
    pub config: [u8; DEVICE_CONFIG_BYTES],
}
assert_size!(DeviceInfo, 128);

// ---------------------------------------------------------------------------------------------------------------------
// Between the tender's code in a virtual machine and the tender. A guest MUST NOT use these ports; one that does has
// said something about itself only.

/// Port `PORT_FAULT + v`, v below 256: exception `v` was delivered, its frame is at `rsp`.
pub const PORT_FAULT: u16 = 0;
/// The door.
pub const PORT_CALL: u16 = 0x500;
/// The doorbell: the number of the peer or queue, 4 bytes.
pub const PORT_DOORBELL: u16 = 0x504;
/// Ports that a guest can reach are below.
pub const PORT_END: u16 = 0x508;

/// Exceptions that have an error code in their frame: a bit for each vector (Intel SDM volume 3, table 7-1).
pub const VECTORS_WITH_ERROR: u32 = 0x6022_7d00;
/// #DE.
pub const VECTOR_DIVIDE: u32 = 0;
/// #BP.
pub const VECTOR_BREAKPOINT: u32 = 3;
/// #UD.
pub const VECTOR_INVALID_OPCODE: u32 = 6;
/// #GP.
pub const VECTOR_PROTECTION: u32 = 13;
/// #PF.
pub const VECTOR_PAGE: u32 = 14;
