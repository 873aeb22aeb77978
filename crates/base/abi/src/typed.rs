//! The interfaces of the kernel module that hosts typed code.
//!
//! **Sides.** [`TypedCheck`]: the module (`/dev/kyozon-typed`), and the `kyozon` command. [`TypedChecker`]: the
//! module's C code, and the checker that is linked with it; both are built together.
//!
//! **Version.** [`TYPED_VERSION`]. The module refuses a request with another version.
//!
//! **When to bump it.** Add 1 when a size, an offset, a constant's value or the meaning of a field of a request
//! changes. New wording or a renamed item does not change the version.

use crate::assert_size;
use crate::device::Image;
use core::mem::size_of;

/// Version of the requests.
pub const TYPED_VERSION: u32 = 1;

/// Start of the region that programs for the kernel are made for.
pub const TYPED_REGION: u64 = 0x1000_0000;
/// Bytes that are reserved for the region: each 32-bit index, scaled by up to 8, plus each 32-bit offset.
pub const TYPED_RESERVED: u64 = 40 << 30;
/// Most bytes of a program's file.
pub const TYPED_MAX_FILE: u64 = 16 << 20;
/// Bytes of the line that explains why a request failed, including the closing zero.
pub const TYPED_MESSAGE_BYTES: usize = 256;

/// `ioctl` request: [`TypedCheck`], `_IOWR('K', 16, struct kyozon_typed_check)`.
pub const IOCTL_TYPED_CHECK: u32 = 0xc128_4b10;

/// A program to check. If it is refused, the error is `ENOEXEC` and `message` has the broken rule; after another error
/// `message` says what was wrong with the request.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TypedCheck {
    /// [`TYPED_VERSION`].
    pub version: u32,
    /// Zero.
    pub flags: u32,
    /// The program's file.
    pub file: Image,
    /// What an accepted program has.
    pub contents: TypedContents,
    /// A C string.
    pub message: [u8; TYPED_MESSAGE_BYTES],
}
assert_size!(TypedCheck, 296);

/// What the checker says about an accepted program.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TypedContents {
    /// Number of functions.
    pub functions: u32,
    /// Bytes of text.
    pub text_bytes: u32,
    /// Bytes of annotations.
    pub annotation_bytes: u32,
    /// Number of instructions that may fault.
    pub faults: u32,
}
assert_size!(TypedContents, 16);

/// [`TypedChecker::host`]: the text may have indirect branches of its own.
pub const TYPED_INDIRECT_BRANCHES: u32 = 1;
/// [`TypedChecker::host`]: indirect branch tracking is on.
pub const TYPED_TRACKING: u32 = 2;
/// [`TypedChecker::host`]: the checker panics, for a test of what follows.
pub const TYPED_PANIC: u32 = 0x8000_0000;

/// [`TypedChecker::result`]: the program is safe.
pub const TYPED_ACCEPTED: u32 = 0;
/// [`TypedChecker::result`]: a rule is broken; `message` has it.
pub const TYPED_REFUSED: u32 = 1;
/// [`TypedChecker::result`]: `memory` does not suffice for this program.
pub const TYPED_NO_MEMORY: u32 = 2;
/// [`TypedChecker::result`]: the module ended the check.
pub const TYPED_STOPPED: u32 = 3;
/// [`TypedChecker::result`]: the checker has a bug; `message` has the place.
pub const TYPED_PANICKED: u32 = 4;

/// A call of the checker. Addresses are the kernel's.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TypedChecker {
    /// The file, which nothing else writes to.
    pub file: u64,
    /// Its bytes.
    pub file_bytes: u64,
    /// Memory for the checker, at a multiple of 8.
    pub memory: u64,
    /// Its bytes.
    pub memory_bytes: u64,
    /// Receives the offsets, in the text, of the instructions that may fault: 4 bytes each, sorted.
    pub faults: u64,
    /// How many there is room for.
    pub fault_room: u64,
    /// Receives a line, a C string.
    pub message: u64,
    /// Its room.
    pub message_bytes: u64,
    /// Sum of `TYPED_INDIRECT_BRANCHES`, `TYPED_TRACKING` and `TYPED_PANIC`.
    pub host: u32,
    /// `TYPED_ACCEPTED` and so on.
    pub result: u32,
    /// What an accepted program has.
    pub contents: TypedContents,
}
assert_size!(TypedChecker, 88);

const _: () = {
    assert!(
        IOCTL_TYPED_CHECK
            == (3 << 30) | ((size_of::<TypedCheck>() as u32) << 16) | (0x4b << 8) | 16
    );
};
