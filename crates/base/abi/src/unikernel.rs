//! The guest interface: the tender and its guests.
//!
//! **Sides.** The tender, which runs a guest in a virtual machine or in a confined process, and the guest.
//!
//! **Version.** [`UNIKERNEL_VERSION`]. The tender refuses an image whose note has another version. [`GuestBoot`] and
//! [`RegionHeader`] contain it, too.
//!
//! **When to bump it.** Add 1 when a size, an offset, a constant's value, the meaning of a field or a rule below
//! changes. New wording or a renamed item does not change the version.
//!
//! The words MUST, MUST NOT, SHOULD, SHOULD NOT and MAY have the meaning of RFC 2119.
//!
//! - A *guest* is one image in one address space with one thread of execution. A guest that a command starts is
//!   *initial*; a guest that another guest starts is *spawned*.
//! - A *group* consists of up to [`MAX_PEERS`] guests and host processes that share regions. They are its *peers* and
//!   are numbered from 0.
//! - A *family* is one initial guest and all guests that it or its descendants spawned: one image and one memory with
//!   several threads of execution, each a guest of its own.
//!
//! # The image
//!
//! 1. An image MUST be an ELF64 file for x86-64, little endian, of type `ET_EXEC`, with at most [`MAX_SEGMENTS`]
//!    loadable segments and neither an interpreter nor dynamic relocations.
//! 2. Each segment MUST lie in [`GUEST_IMAGE_BASE`]..[`GUEST_IMAGE_END`]. No two segments may share a page of 4096
//!    bytes, and none may be both writable and executable. The entry MUST lie in an executable segment.
//! 3. An image MUST have a note with the name `Kyozon` and the type [`NOTE_VERSION`], whose 4 bytes are
//!    [`UNIKERNEL_VERSION`].
//! 4. An image MAY have one `PT_TLS` segment of at most [`MAX_TLS_BYTES`], aligned to at most 4096.
//! 5. A writable segment with the flag [`SEGMENT_PRIVATE`] is *private*, see "Spawning".
//! 6. A guest MUST NOT use the instructions `syscall`, `sysenter`, `int`, `hlt`, `in` and `out`, nor load segment
//!    registers, because their effect differs between backends. It SHOULD take the processor's features from
//!    [`GuestBoot::features`], not from `cpuid`.
//!
//! An image can be the *host* of a *program*, which is part of the guest's image from then on. A program MUST be an
//! ELF64 file for x86-64 of type `ET_DYN` without an interpreter, whose note with the name `Kyozon` and the type
//! [`NOTE_SEAM`] has the 4 bytes [`SEAM_VERSION`]. The tender adds [`GUEST_PROGRAM_BASE`] to its addresses, and then
//! rule 2 holds for host and program together; nothing else of the program is relocated. The file's header MUST lie in
//! its first segment. The host, not the program, gets the first instruction, and finds [`GuestBoot::program`].
//!
//! A tender MUST refuse every other image before its first instruction. It MAY ignore sections and symbols. If an image
//! has symbols, the tender SHOULD name functions in a crash report.
//!
//! # The first instruction
//!
//! | register | value |
//! |---|---|
//! | `rip` | the entry |
//! | `rdi` | address of the [`GuestBoot`] |
//! | `rsi` | [`GuestBoot::argument`]: 0 except in a spawned peer |
//! | `rsp` | top of the stack minus 8, so that the entry is a function of the System V ABI; the word there is 0 |
//! | `rbp` | 0 |
//! | `fs` base | [`GuestBoot::thread`]: the end of thread-local data, where a word holds this same address |
//! | `rflags` | DF = 0; a guest MUST NOT rely on any other flag |
//!
//! The guest runs at CPL 3 in 64-bit mode, with SSE2. The x87 control word is 0x37f and `MXCSR` is 0x1f80. The guest
//! MAY use a red zone.
//!
//! # Memory
//!
//! All of a guest's memory lies below 512 GiB. Pages outside every [`Area`], region and segment are not mapped, in
//! particular the page at 0 and the pages directly before and after each stack. No page is both writable and
//! executable. Memory that no file fills is zero. An access to an unmapped page, or without the right to it, ends the
//! guest with a crash report.
//!
//! # Calls
//!
//! To call the tender, a guest writes a number `ASK_*` and the arguments to its [`CallBlock`] and calls
//! [`GuestBoot::hypercall`], a function of the System V ABI without arguments. [`CallBlock::result`] is then 0 or more,
//! or one of `ERROR_*`. Unused arguments MUST be 0.
//!
//! A tender MUST copy the block once, before it examines any part of it. Whatever the block holds, the tender MUST NOT
//! fail, wait without need, or end another guest. Calls are slow (microseconds, on some hosts tens of them), so the
//! data path makes none.
//!
//! Addresses in arguments are the guest's virtual addresses. The tender reads or writes `bytes` bytes there. The guest
//! MUST have the right to read or write all of them; otherwise nothing happens and the result is [`ERROR_ADDRESS`].
//!
//! # Time
//!
//! With [`FEATURE_TSC`], the group's monotonic clock shows this many nanoseconds, computed with a product of 128 bits:
//!
//! ```text
//! clock_ns + (((rdtsc() + tsc_offset - clock_tsc) * clock_scale) >> 32)
//! ```
//!
//! The clock is the same for all peers of a group. Its rate is as exact as the tender knows the counter's rate, better
//! than 0.1 %. Without the feature, a guest reads the clock by [`ASK_CLOCK`].
//!
//! # Sleeping
//!
//! Each peer has one token. [`ASK_PARK`] sleeps until the token is there or a deadline has passed, and takes the token;
//! it MAY return early. [`GuestBoot::doorbell`] gives a peer its token and never waits. A token that is given before
//! the peer parks is not lost; a second token adds nothing to the first. When a peer ends, every other peer of its
//! group gets its token.
//!
//! # Spawning
//!
//! [`ASK_SPAWN`] adds a peer to the caller's family: a thread of execution in an address space that contains
//!
//! - *the same* memory at the same addresses: text, constants and data of the image, the heap, and all stacks, with
//!   their contents at each moment;
//! - *its own* memory at the same addresses: boot block, call block, thread-local data, and private segments. The last
//!   two start with the contents of the image's file, not of the caller's memory. An address there means something else
//!   in each peer, so peers SHOULD NOT pass such addresses to each other;
//! - the regions that the caller has mapped at that moment, with the same rights, and no other grants.
//!
//! Its first instruction is `entry`, which MUST lie in an executable segment. Registers are as in "The first
//! instruction": `rdi` is its boot block, `rsi` the argument, `rsp` the end of its stack minus 8, the `fs` base its own
//! thread-local data.
//!
//! Its stack is memory of the family that the caller chooses: `bytes` bytes from `stack` on, both multiples of 4096, at
//! least [`MIN_STACK_BYTES`], in one writable piece that is not private. The first page is a guard and not mapped in
//! the spawned peer. The tender sets the word at `rsp` to 0 and touches nothing else. The family MUST NOT use this
//! memory for anything else until the spawned peer is gone.
//!
//! The result names the peer; its number is the lowest free one. The call returns when the peer is ready to run; the
//! peer MAY already have run then. A number is free if no peer has had it, or if the peer that had it was spawned and
//! is gone. If other commands can join the group, the numbers of all peers that are gone become free in the end, those
//! of initial guests last. Each use of a number has its own generation. A group has at most [`GuestBoot::limit`] peers
//! at once; beyond that, if the family has reached a limit of its own, or if the host has no room, the result is
//! [`ERROR_FULL`]. A spawned peer has the same standing as any other for doorbells, regions and spawning.
//!
//! [`GuestBoot::peer_table`] shows the state of each number. A spawned peer ends as every guest does: by [`ASK_EXIT`],
//! by [`ASK_PANIC`], by a crash, which the tender reports, or by [`ASK_END`]. Once its state is [`PEER_LEFT`] or
//! [`PEER_DEAD`], it never touches memory again, and then every other peer gets its token. When an initial guest ends,
//! for whatever reason, its whole family ends.
//!
//! A peer can be *bound* to another peer of its family, its *owner*, whose memory it borrows:
//!
//! - The end of the owner ends the peers that are bound to it, and they are gone before the owner's state says that it
//!   is gone. It ends no other peer, not even those that it spawned.
//! - A bound peer that dies may leave that memory half changed, so it ends its owner: before its own state says that it
//!   is gone, the tender has begun to stop the owner, whose status becomes that of the bound peer ([`STATUS_CRASH`] if
//!   it has none). It ends no owner if it exits with [`EXIT_ALONE`], or after a peer of the family called [`ASK_END`]
//!   for it: both say that the memory is whole.
//!
//! A group can be limited to the peers that a command starts: then [`FEATURE_SPAWN`] is clear, and [`ASK_SPAWN`] fails
//! with [`ERROR_UNSUPPORTED`].
//!
//! # Regions
//!
//! A region is named memory that several peers see at the same address, each with the rights that it was granted. Its
//! first page is a [`RegionHeader`], which guests can only read; data starts in the second page. The tender owns the
//! memory: a region lives as long as its group.
//!
//! # Devices
//!
//! An initial guest MAY have devices; a spawned peer has none. The devices are those of Virtual I/O Device (VIRTIO)
//! version 1.2, whose sections are cited here. They are numbered from 0. [`ASK_DEVICE`] describes each of them, and
//! there is no other discovery. There is no transport, no reset and no device status. The features of section 2.1 are
//! not negotiated: the device uses all [`DeviceInfo::features`], and a guest that cannot work with one of these
//! features MUST NOT start the device's queues. The configuration space is [`DeviceInfo::config`] and never
//! changes.
//!
//! 1. Queues are split virtqueues (section 2.7). The number of entries MUST be a power of two, at most
//!    [`DeviceInfo::max_size`].
//! 2. Addresses are the guest's. The three parts of a queue, and all memory that its descriptors name, MUST lie in
//!    [`GuestBoot::heap`]; the device reads and writes no other memory of the guest.
//! 3. [`ASK_QUEUE_START`] starts a queue. Its rings MUST be empty, with both indices 0. From then on both sides may
//!    access the memory, until [`ASK_QUEUE_STOP`] returns or the guest ends. After that the device touches none of it.
//! 4. To announce entries, the guest calls [`GuestBoot::doorbell`] with [`DeviceInfo::doorbell`] plus the queue's
//!    number; this never waits. All devices have `VIRTIO_F_EVENT_IDX`: the guest MUST ring if one of the new entries
//!    has the index in `avail_event` of the used ring (section 2.7.10), counted from 0 for a queue's first entry, and
//!    SHOULD NOT ring otherwise. The device looks for entries only after a ring, but MAY then take entries that were
//!    added later. For a network's receive queue the device looks when a frame arrives, so the guest need not ring.
//! 5. To announce that it returned entries, the device gives the guest its token, as peers do, if one of them has the
//!    index in `used_event` of the available ring (section 2.7.7). It MAY give the token without need. Before a guest
//!    parks, it MUST write `used_event`, execute a full fence, and look at the used ring once more. The flags of both
//!    rings have no meaning.
//! 6. A queue that breaks a rule fails, and nothing else fails: the guest gets its token, [`ASK_QUEUE_STATE`] returns
//!    [`QUEUE_FAILED`], and the device no longer touches the queue's memory. The guest MAY stop it and start it again.
//!    The requests of entries that did not return may or may not have been carried out.
//! 7. A request that is complete but makes no sense to its device fails as the device's section says.
//!
//! A network device (section 5.1) has the receive queue as queue 0 and the transmit queue as queue 1. It is one port of
//! a network: a guest's frames go to the other guests, and to the host if the network has a port there, by their
//! destination address. A frame is lost if its receiver has no room. A block device (section 5.2) has queue 0.

mod address_space;
mod boot;
mod call;
mod device;
mod image;
mod port;
pub mod region;

pub use address_space::*;
pub use boot::*;
pub use call::*;
pub use device::*;
pub use image::*;
pub use port::*;
pub use region::{
    RegionHeader, RegionPeer, SharedRegion, PEER_ABSENT, PEER_DEAD, PEER_LEFT, PEER_PRESENT,
    REGION_HEADER_BYTES, REGION_MAGIC, REGION_NAME_BYTES, REGION_READ, REGION_WRITE,
};

/// Version of this interface.
pub const UNIKERNEL_VERSION: u32 = 7;

/// Maximum number of peers in a group: a set of peers is one word of 64 bits.
pub const MAX_PEERS: usize = 64;
/// Maximum number of regions in a group.
pub const MAX_REGIONS: usize = 16;
