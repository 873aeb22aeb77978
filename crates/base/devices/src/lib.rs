//! Virtio block and net: one set of device models for tender and library Linux.
//!
//! | module | contents |
//! |---|---|
//! | [`ring`] | a guest's split queue on top of `virtio-queue`, and the rules that end it |
//! | [`chain`] | one checked entry of a queue: a guest's request |
//! | [`block`], [`disk`] | a disk, in a file or in memory |
//! | [`net`] | a network port, which takes frames from its guest and gives frames to it |
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
//! This crate must not know what drives a queue: a virtual machine's doorbell or a function call. The driver calls
//! [`block::Block::serve`] when the guest rang, and wakes the guest if the result says so.

pub mod block;
pub mod chain;
pub mod disk;
pub mod fake;
pub mod fuzz;
pub mod net;
pub mod ring;

use vm_memory::GuestMemory;

/// A guest's memory, at the addresses that the guest writes to its queues.
pub trait Memory: GuestMemory<Bitmap = ()> {}
impl<M: GuestMemory<Bitmap = ()>> Memory for M {}
