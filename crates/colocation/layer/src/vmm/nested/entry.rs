//! Entries of nested page tables, and tables with the same meaning as another entry.
//!
//! An IOMMU walks the same tables, and an entry means the same to it: it reads the level of the table that follows, and
//! the rights, in bits that a processor leaves to software if CR4.PKE is 0. AMD IOMMU specification (48882), 2.2.3.

use crate::frames::Frames;
use core::sync::atomic::{fence, Ordering};

/// Set in each entry that maps something.
pub const PRESENT: u64 = 1;
/// The guest may write.
pub const WRITE: u64 = 1 << 1;
pub(in crate::vmm) const USER: u64 = 1 << 2;
/// PWT and PCD: type 3 of the host's PAT, uncacheable unless the host changed it. It combines with the guest's
/// type (15.25.8).
pub const UNCACHED: u64 = 1 << 3 | 1 << 4;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
pub(in crate::vmm) const LARGE: u64 = 1 << 7;
/// In an entry that is not present: unmapped on purpose. The bit is available to software.
pub const ABSENT: u64 = 1 << 9;
/// Devices may read; they may write.
const DEVICE_READS: u64 = 1 << 61;
const DEVICE_WRITES: u64 = 1 << 62;
/// Position of the level of the table that an entry leads to, 0 for none.
const NEXT_LEVEL: u32 = 9;
/// The guest may not execute.
pub const NO_EXECUTE: u64 = 1 << 63;
/// The address in an entry.
pub const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// Bytes of the smallest page.
pub const PAGE: u64 = 4096;
/// Entries of a table.
pub(in crate::vmm) const ENTRIES: usize = 512;

/// The guest's rights to memory besides reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Write.
    pub write: bool,
    /// Execute.
    pub execute: bool,
    /// The memory is uncacheable, whatever type the guest chooses.
    pub uncached: bool,
}

impl Rights {
    /// Read, write and execute: Linux's rights to its own memory.
    pub const ALL: Self = Self { write: true, execute: true, uncached: false };
    /// Read and execute.
    pub const TEXT: Self = Self { write: false, ..Self::ALL };
    /// Read and write.
    pub const DATA: Self = Self { execute: false, ..Self::ALL };
    /// Read.
    pub const READ: Self = Self { write: false, ..Self::DATA };
    /// Read and write a device's registers.
    pub const DEVICE: Self = Self { uncached: true, ..Self::DATA };
    /// Read a device's registers.
    pub const DEVICE_READ: Self = Self { uncached: true, ..Self::READ };

    pub(in crate::vmm) const fn flags(self) -> u64 {
        PRESENT
            | USER
            | ACCESSED
            | DIRTY
            | DEVICE_READS
            | if self.write { WRITE | DEVICE_WRITES } else { 0 }
            | if self.execute { 0 } else { NO_EXECUTE }
            | if self.uncached { UNCACHED } else { 0 }
    }
}

/// Bytes that an entry of `level` maps.
pub(in crate::vmm) const fn span(level: u32) -> u64 {
    1 << (3 + 9 * level)
}

pub(in crate::vmm) const fn index(gpa: u64, level: u32) -> usize {
    (gpa >> (3 + 9 * level) & 511) as usize
}

/// An entry that maps the page of `level` at `pa`.
pub(in crate::vmm) fn leaf(pa: u64, rights: Option<Rights>, level: u32) -> u64 {
    let large = if level > 1 { LARGE } else { 0 };
    rights.map_or(ABSENT, |r| pa | r.flags() | large)
}

pub(in crate::vmm) fn is_table(entry: u64, level: u32) -> bool {
    level > 1 && entry & PRESENT != 0 && entry & LARGE == 0
}

/// Entry `i` of a table with the meaning of `entry` of `level`, which is a leaf or absent.
fn part(entry: u64, level: u32, i: usize) -> u64 {
    if entry & PRESENT == 0 {
        return entry;
    }
    let entry = if level == 2 { entry & !LARGE } else { entry };
    entry + i as u64 * span(level - 1)
}

/// Makes `page` a table with the meaning of `entry` of `level`: a copy of its table, or the parts of its page.
pub(in crate::vmm) fn copy(frames: &mut impl Frames, page: u64, entry: u64, level: u32) {
    if is_table(entry, level) {
        return frames.copy(page, entry & ADDRESS);
    }
    for i in 0..ENTRIES {
        *frames.entry(page, i) = part(entry, level, i);
    }
}

/// Makes the entry of `level` for `gpa` in `table` lead to the filled table at `page`.
pub(in crate::vmm) fn link(frames: &mut impl Frames, table: u64, gpa: u64, level: u32, page: u64) {
    // Stores of x86 are seen in their order; the compiler must keep it too.
    fence(Ordering::Release);
    *frames.entry(table, index(gpa, level)) = page
        | PRESENT
        | WRITE
        | USER
        | ACCESSED
        | DEVICE_READS
        | DEVICE_WRITES
        | u64::from(level - 1) << NEXT_LEVEL;
}
