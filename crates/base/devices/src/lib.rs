//! Virtio block, net and file system: one set of device models for tender and library Linux.
//!
//! | module | contents |
//! |---|---|
//! | [`ring`] | a guest's split queue on top of `virtio-queue`, and the rules that end it |
//! | [`chain`] | one checked entry of a queue: a guest's request |
//! | [`block`], [`disk`] | a disk, in a file or in memory |
//! | `directory` | a folder of the host as a file system (feature `directory`) |
//! | [`net`] | a network port, which takes frames from its guest and gives frames to it; backends |
//! | [`mmio`], [`bus`] | registers in front of a device, and the devices of a guest |
//! | [`ram`] | memory of this process as a guest's memory |
//! | [`worker`] | a device's thread |
//! | [`poller`] | threads that serve devices while they wait for something else |
//! | [`fake`], [`fuzz`] | a guest for tests, and a fuzzer's input as a hostile guest |
//!
//! Sections are those of the specification, Virtual I/O Device (VIRTIO) version 1.2.
//!
//! Invariants:
//!
//! 1. A guest's queue is hostile. A bad descriptor ends that queue and nothing else: the device no longer reads or
//!    writes the queue's memory, until the guest starts the queue again.
//! 2. A value that a guest wrote is copied once, then checked, then used. There are no references to its memory.
//! 3. A call ends after a bounded number of requests, each of bounded size, whatever the guest writes meanwhile.
//!
//! 4. There is unsafe code only where a system call or a process's memory needs it: `disk::vectored`, `disk::file`,
//!    `net::backend::tap`, `directory`, [`ram`] and [`worker`].
//!
//! This crate must not know what drives a queue: a virtual machine's doorbell or a function call. Either its user calls
//! [`block::Block::serve`] when the guest rang, and wakes the guest if the result says so, as the tender does. Or its
//! user passes the guest's accesses to registers to a [`bus::Bus`], as library Linux does:
//!
//! ```
//! use kyozon_devices::block::{Block, BlockDevice};
//! use kyozon_devices::bus::{Bus, Slot};
//! use kyozon_devices::disk::MemoryDisk;
//! use kyozon_devices::ram::Ram;
//! use std::sync::Arc;
//!
//! let mut memory = vec![0; 1 << 20];
//! // SAFETY: the vector is not used before the bus is gone.
//! let ram = unsafe { Ram::new(memory.as_mut_ptr(), memory.len()) };
//! let first = Slot { address: 0xd000_0000, irq: 5 };
//! let mut bus = Bus::new(ram, first, Arc::new(|irq| println!("interrupt {irq}")))?;
//! let disk = Block::new(Box::new(MemoryDisk::new(vec![0; 1 << 16])), false, "disk").extended();
//! bus.add(BlockDevice::inline(disk))?;
//! assert_eq!(bus.command_line(), "virtio_mmio.device=4K@0xd0000000:5");
//! assert_eq!(bus.access(0xd000_0008, 4, false, 0), 2, "the number of block devices");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! There is no io_uring: requests of a disk are served one after the other by one thread, so that it would replace one
//! system call by another one, and containers often forbid it.

pub mod block;
pub mod bus;
pub mod chain;
#[cfg(feature = "directory")]
pub mod directory;
pub mod disk;
pub mod fake;
pub mod fuzz;
pub mod mmio;
pub mod net;
pub mod poller;
pub mod ram;
pub mod ring;
pub mod worker;

use vm_memory::GuestMemory;

/// A guest's memory, at the addresses that the guest writes to its queues.
pub trait Memory: GuestMemory<Bitmap = ()> {}
impl<M: GuestMemory<Bitmap = ()>> Memory for M {}
