//! Addresses in a guest. A guest MUST take addresses from its boot block; these constants serve to link images and to
//! choose addresses of regions.

use crate::assert_size;

/// First address of an image: 64 GiB.
pub const GUEST_IMAGE_BASE: u64 = 0x10_0000_0000;
/// End of the address range for images, exclusive.
pub const GUEST_IMAGE_END: u64 = 0x10_1000_0000;
/// Address to which a program is moved: 32 MiB behind the first address of an image.
pub const GUEST_PROGRAM_BASE: u64 = 0x10_0200_0000;
/// The tender's pages: boot block, call block, code for hypercalls and doorbells.
pub const GUEST_SYSTEM_BASE: u64 = 0xf_0000_0000;
/// Top of the stack.
pub const GUEST_STACK_TOP: u64 = 0x18_0000_0000;
/// Thread-local data.
pub const GUEST_THREAD_BASE: u64 = 0x1c_0000_0000;
/// The heap.
pub const GUEST_HEAP_BASE: u64 = 0x20_0000_0000;
/// Maximum bytes of memory of one guest.
pub const GUEST_MAX_MEMORY: u64 = 0x10_0000_0000;
/// Start of the regions whose creator chooses the address.
pub const REGION_BASE: u64 = 0x40_0000_0000;
/// Start of the regions whose address the tender chooses.
pub const REGION_AUTO_BASE: u64 = 0x60_0000_0000;
/// End of the address range for regions, exclusive.
pub const REGION_END: u64 = 0x70_0000_0000;

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
