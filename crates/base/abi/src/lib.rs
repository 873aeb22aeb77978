//! Structures that two sides share, one module per interface.
//!
//! | module | one side | other side |
//! |---|---|---|
//! | [`layer`] | kernel module, layer | layer, cokernel and task images |
//! | [`device`] | kernel module (`/dev/kyozon`) | the `kyozon` command |
//! | [`events`] | cokernel and layer | every reader of the event ring |
//! | [`task`] | microkernel | its user tasks |
//! | [`library`] | kernel image of library Linux | its loader |
//! | [`typed`] | kernel module of typed code (`/dev/kyozon-typed`) | the `kyozon` command; the checker in the module |
//! | [`unikernel`] | tender | guest |
//! | [`vmm`] | kernel module, and the layer in the cokernel's guest | hypervisor |
//!
//! Two helpers serve the bare-metal sides of these interfaces: [`image`] assembles the header of a flat image, and
//! [`mod@line`] is a line of text in fixed memory.
//!
//! Rules for every module:
//!
//! 1. Structures are `repr(C)`, have no padding inserted by the compiler, and contain only integers of stated width,
//!    little endian: no pointer types, no `bool`, no `usize`. A reader built by another compiler sees the same bytes.
//! 2. `VERSION` grows by one whenever the bytes or their meaning change. Each side compares it before it reads anything
//!    else, and refuses a version that it does not know.
//! 3. The size of each structure is asserted next to its definition.
//! 4. No behaviour: a structure has no method that a peer's bytes could drive into a loop or a panic.
//!
//! `include/kyozon/abi.h` is the same interface for C, without [`task`]. The file is generated and committed, and a
//! test fails if it is stale: `BLESS=1 cargo test -p kyozon-abi --test header` writes it again.
//!
//! This crate must not know its users: no dependency, no allocation, no `std`.
#![no_std]
#![forbid(unsafe_code)]

pub mod device;
pub mod events;
pub mod image;
pub mod layer;
pub mod library;
pub mod line;
pub mod task;
pub mod typed;
pub mod unikernel;
pub mod vmm;

/// Fails the build if the size of a structure is not the size that both sides agreed on.
macro_rules! assert_size {
    ($type:ty, $bytes:expr) => {
        const _: () = assert!(
            core::mem::size_of::<$type>() == $bytes,
            concat!("size of ", stringify!($type), " is part of the interface: bump VERSION")
        );
    };
}
pub(crate) use assert_size;
