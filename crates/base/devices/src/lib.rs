//! Virtio block and net: one set of device models for tender and library Linux.
//!
//! | module | what it does |
//! |---|---|
//! | [`ring`] | a split queue of a guest's, by `virtio-queue`, and when it ends |
//! | [`chain`] | what a guest asks with one entry of its queue, checked |
//! | [`block`], [`disk`] | a disk, of a file or of memory |
//! | [`net`] | a port that takes frames and gives them |
//! | [`fake`], [`fuzz`] | a guest, and a fuzzer's input as a hostile one |
//!
//! References to sections are to the specification, Virtual I/O Device (VIRTIO) version 1.2.
//!
//! Invariants:
//!
//! 1. A guest's queue is hostile. A bad descriptor ends that queue, nothing else: from then on nothing of it is read
//!    or written, until the guest starts it anew.
//! 2. What a guest wrote is copied once, then checked, then used. There is no reference to its memory.
//! 3. A call ends after a bounded number of requests, each of bounded size, whatever the guest writes meanwhile.
//!
//! Must not know: what drives the queue, a virtual machine's doorbell or a function call. Whoever does calls
//! [`block::Block::serve`] when the guest rang, and wakes the guest where that says so.

pub mod block;
pub mod chain;
pub mod disk;
pub mod fake;
pub mod fuzz;
pub mod net;
pub mod ring;

use vm_memory::GuestMemory;

/// A guest's memory, at the addresses that it writes into its queues.
pub trait Memory: GuestMemory<Bitmap = ()> {}
impl<M: GuestMemory<Bitmap = ()>> Memory for M {}
