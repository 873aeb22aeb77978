//! Tender on one side, guest on the other.
//!
//! A guest runs entirely in user mode. It finds a [`GuestBoot`] at the address in its first argument register and
//! asks the tender for anything else by the hypercall that the boot block names. The data path never asks: it
//! runs in shared regions.

use crate::assert_size;

/// Version of everything in this module.
pub const UNIKERNEL_VERSION: u32 = 1;

/// Most regions that one guest may have at once.
pub const MAX_REGIONS: usize = 16;

/// [`GuestBoot::backend`]: a virtual machine.
pub const BACKEND_KVM: u32 = 1;
/// [`GuestBoot::backend`]: a confined process.
pub const BACKEND_PROCESS: u32 = 2;

/// [`SharedRegion::rights`]: the guest may read.
pub const REGION_READ: u32 = 1;
/// [`SharedRegion::rights`]: the guest may write.
pub const REGION_WRITE: u32 = 2;

/// What a guest knows at its first instruction.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GuestBoot {
    /// [`UNIKERNEL_VERSION`].
    pub version: u32,
    /// `BACKEND_*`.
    pub backend: u32,
    /// `extern "C" fn(number, argument block) -> i64`: the hypercall.
    pub hypercall: u64,
    /// Start of the memory that is the guest's own: virtual address.
    pub memory: u64,
    /// Bytes of it.
    pub memory_bytes: u64,
    /// Top of the first stack.
    pub stack_top: u64,
    /// Time-stamp counter ticks in a millisecond.
    pub tsc_khz: u64,
    /// Added to the guest's time-stamp counter gives the host's.
    pub tsc_offset: u64,
    /// How many of `regions` are set.
    pub region_count: u64,
    /// Regions that were granted before the start.
    pub regions: [SharedRegion; MAX_REGIONS],
}
assert_size!(GuestBoot, 64 + 64 * MAX_REGIONS);

/// A named piece of memory that several guests see at the same address.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedRegion {
    /// Name, UTF-8, zero-padded.
    pub name: [u8; 32],
    /// Virtual address, the same in every guest.
    pub address: u64,
    /// Bytes, a multiple of 4096.
    pub bytes: u64,
    /// `REGION_*`.
    pub rights: u32,
    /// Grows each time that the region is created anew under this name.
    pub generation: u32,
    /// Must be zero.
    pub reserved: u64,
}
assert_size!(SharedRegion, 64);
