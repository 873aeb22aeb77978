//! Limits of an image.

/// Maximum number of loadable segments of an image.
pub const MAX_SEGMENTS: usize = 16;
/// Maximum bytes of thread-local data.
pub const MAX_TLS_BYTES: u64 = 1 << 20;
/// Flag of a private segment, one of those that ELF leaves to operating systems (`PF_MASKOS`).
pub const SEGMENT_PRIVATE: u32 = 0x10_0000;
/// Maximum bytes of all private segments together.
pub const MAX_PRIVATE_BYTES: u64 = 16 << 20;
/// Minimum bytes of a spawned peer's stack, including its guard page.
pub const MIN_STACK_BYTES: u64 = 8192;
/// Type of the note, with the name `Kyozon`, that holds the version.
pub const NOTE_VERSION: u32 = 1;
/// Type of the note, with the name `Kyozon`, that holds the version of the seam between a program and its host.
pub const NOTE_SEAM: u32 = 2;
/// Version of that seam: `kyozon/seam.h`.
pub const SEAM_VERSION: u32 = 1;
