//! Structures that two sides share.
//!
//! One module an interface:
//!
//! | module | one side | other side |
//! |---|---|---|
//! | [`layer`] | kernel module, colocation layer | cokernel and task images |
//! | [`device`] | kernel module (`/dev/kyozon`) | the `kyozon` command |
//! | [`events`] | cokernel, layer | whoever reads what the monitor found |
//! | [`task`] | microkernel | its user tasks |
//! | [`unikernel`] | tender | guest |
//! | [`vmm`] | kernel module, layer | hypervisor |
//!
//! Besides the interfaces there are two helpers for their bare-metal sides: [`image`] assembles the header of a flat
//! image, and [`line`] is a line of text in fixed memory.
//!
//! Rules that every module keeps:
//!
//! 1. `repr(C)`, no padding that the compiler chose, no pointer types, no `bool`, no `usize`: only integers of
//!    stated width, little endian. A reader that was built by another compiler sees the same bytes.
//! 2. `VERSION` grows by one whenever the bytes or their meaning change. Each side compares before it
//!    looks at anything else, and refuses what it does not know.
//! 3. The size of each structure is asserted where the structure stands.
//! 4. No behaviour: a structure here has no method that a peer's bytes could drive into a loop or a panic.
//!
//! `include/kyozon/abi.h` is this crate for C, without [`task`]. It is generated, committed, and a test fails when it is stale:
//! `BLESS=1 cargo test -p kyozon-abi --test header` writes it anew.
//!
//! This crate must not know who calls it: no dependency, no allocation, no `std`.
#![no_std]
#![forbid(unsafe_code)]

pub mod device;
pub mod events;
pub mod image;
pub mod layer;
pub mod line;
pub mod task;
pub mod unikernel;
pub mod vmm;

/// Fails the build when a structure's size is not the one both sides agreed on.
macro_rules! assert_size {
    ($type:ty, $bytes:expr) => {
        const _: () = assert!(
            core::mem::size_of::<$type>() == $bytes,
            concat!("size of ", stringify!($type), " is part of the interface: bump VERSION")
        );
    };
}
pub(crate) use assert_size;
