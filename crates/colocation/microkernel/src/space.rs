//! Address spaces: a task's page tables, and the kernel's access to its memory.
//!
//! The kernel never dereferences an address from a task. It walks the task's tables and accesses the page through its
//! own mapping; tables and pages outside the cokernel's memory (Linux's, in the window) end the walk. Intel SDM 3A 4.5.

use crate::boot;
use crate::machine::{Frames, WORDS};
use crate::memory::{Memory, PAGE};
use kyozon_abi::layer::WINDOW_BASE;
use kyozon_abi::task::{TASK_SHARE_BASE, TASK_SHARE_BYTES, TASK_WINDOW_BASE, TASK_WINDOW_BYTES};

const PRESENT: u64 = 1;
const WRITE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const ACCESSED_DIRTY: u64 = 1 << 5 | 1 << 6;
const LARGE: u64 = 1 << 7;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
const TABLE: u64 = PRESENT | WRITE | USER | ACCESSED_DIRTY;
/// The level-4 entry of the kernel's own addresses: none is user mode's.
const KERNEL_TABLE: u64 = PRESENT | WRITE | ACCESSED_DIRTY;

/// A task may read and execute.
pub const TEXT: u64 = PRESENT | USER | ACCESSED_DIRTY;
/// A task may read.
pub const RODATA: u64 = TEXT | NO_EXECUTE;
/// A task may read and write.
pub const DATA: u64 = RODATA | WRITE;
/// Typed code may execute and read.
pub const TYPED_TEXT: u64 = PRESENT | ACCESSED_DIRTY;
/// Typed code may read and write.
pub const TYPED_DATA: u64 = TYPED_TEXT | NO_EXECUTE | WRITE;

/// The layer's tables, which every address space starts with.
#[derive(Clone, Copy)]
pub struct Kernel<'a> {
    /// The top table.
    pub top: &'a [u64; WORDS],
    /// The level-4 table of the top table's entry 0, if there are 5 levels.
    pub level4: Option<&'a [u64; WORDS]>,
    /// The level-3 table of the level-4 table's entry 0.
    pub level3: &'a [u64; WORDS],
    /// The kernel's own copy of that, if it maps more there.
    pub low: Option<Low>,
    /// CR3's bits below the address.
    pub root_bits: u64,
}

/// What every address space has under entry 0 of its level-4 table: what the layer mapped there, and the memory of a
/// typed task, which user mode cannot reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Low(u64);

impl Low {
    /// A copy of the layer's level-3 table. `None` if memory runs out.
    pub fn new(f: &mut impl Frames, memory: &mut Memory, layer: &[u64; WORDS]) -> Option<Self> {
        let table = memory.take()?;
        *f.page(table)? = *layer;
        Some(Self(table))
    }

    /// Maps the page `va`, from `FREE_BASE` to `MEMORY_BASE`, to `physical`. At boot only. `None` if memory runs out.
    pub fn map(
        &self,
        f: &mut impl Frames,
        memory: &mut Memory,
        va: u64,
        physical: u64,
        flags: u64,
    ) -> Option<()> {
        descend(f, memory, self.0, 3, va)?.set(f, va, physical, flags)
    }

    /// The physical address of the page that [`Low::map`] mapped at `va`.
    pub fn physical(&self, f: &mut impl Frames, va: u64) -> Option<u64> {
        let mut table = self.0;
        for level in (1..=3).rev() {
            let entry = f.page(table)?[index(va, level)];
            if entry & PRESENT == 0 {
                return None;
            }
            table = entry & ADDRESS;
        }
        f.page(table).map(|_| table)
    }

    /// Calls `part` with each page's part of `bytes` bytes at `va`: the page, the first byte in it, and the range of
    /// the bytes. False if one is not mapped.
    fn walk<F: Frames>(
        &self,
        f: &mut F,
        va: u64,
        bytes: usize,
        mut part: impl FnMut(&mut [u64; WORDS], usize, core::ops::Range<usize>),
    ) -> bool {
        let mut done = 0;
        while done < bytes {
            let at = va + done as u64;
            let start = (at % PAGE) as usize;
            let count = (bytes - done).min(PAGE as usize - start);
            let page = self.physical(f, at).and_then(|physical| f.page(physical));
            let Some(page) = page else { return false };
            part(page, start, done..done + count);
            done += count;
        }
        true
    }

    /// Copies bytes to `va`. False if not all of that is mapped.
    pub fn write(&self, f: &mut impl Frames, va: u64, from: &[u8]) -> bool {
        self.walk(f, va, from.len(), |page, start, range| {
            for (at, byte) in (start..).zip(&from[range]) {
                let shift = 8 * (at % 8);
                let word = &mut page[at / 8];
                *word = *word & !(0xff << shift) | u64::from(*byte) << shift;
            }
        })
    }

    /// Copies bytes from `va`. False if not all of that is mapped.
    pub fn read(&self, f: &mut impl Frames, va: u64, into: &mut [u8]) -> bool {
        self.walk(f, va, into.len(), |page, start, range| {
            for (at, byte) in (start..).zip(&mut into[range]) {
                *byte = (page[at / 8] >> (8 * (at % 8))) as u8;
            }
        })
    }
}

/// The last-level table for `va` below `table`, which is of `level`; makes missing tables.
fn descend(
    f: &mut impl Frames,
    memory: &mut Memory,
    mut table: u64,
    level: u32,
    va: u64,
) -> Option<Table> {
    for level in (2..=level).rev() {
        let entry = f.page(table)?[index(va, level)];
        table = if entry & PRESENT == 0 {
            let new = memory.take()?;
            f.page(table)?[index(va, level)] = new | TABLE;
            new
        } else {
            entry & ADDRESS
        };
    }
    Some(Table(table))
}

/// One address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// CR3.
    pub root: u64,
    /// Physical address of the level-4 table.
    level4: u64,
    /// Physical address of the last-level table of the share window.
    share: u64,
}

/// Bytes that a last-level table maps.
pub const TABLE_BYTES: u64 = 512 * PAGE;

/// A last-level table during boot.
#[derive(Clone, Copy, Debug)]
pub struct Table(u64);

impl Table {
    /// Maps the page `va`, which must be in this table's range, to `physical`.
    pub fn set(&self, f: &mut impl Frames, va: u64, physical: u64, flags: u64) -> Option<()> {
        f.page(self.0)?[index(va, 1)] = physical | flags;
        Some(())
    }
}

fn index(va: u64, level: u32) -> usize {
    (va >> (3 + 9 * level) & 511) as usize
}

// First entries of the level-4 table for the kernel's window and for a task's window.
const KERNEL_WINDOW: usize = (WINDOW_BASE >> 39) as usize;
const TASK_WINDOW: usize = (TASK_WINDOW_BASE >> 39) as usize;
const WINDOW_ENTRIES: usize = (TASK_WINDOW_BYTES >> 39) as usize;
const _: () =
    assert!(KERNEL_WINDOW + WINDOW_ENTRIES <= TASK_WINDOW && TASK_WINDOW + WINDOW_ENTRIES <= 256);

impl Space {
    /// No address space.
    pub const NONE: Self = Self { root: 0, level4: 0, share: 0 };

    /// A space with the kernel and the share window's tables. `None` if memory runs out.
    pub fn new(f: &mut impl Frames, memory: &mut Memory, kernel: &Kernel<'_>) -> Option<Self> {
        let top = memory.take()?;
        *f.page(top)? = *kernel.top;
        let mut level4 = top;
        if let Some(below) = kernel.level4 {
            level4 = memory.take()?;
            *f.page(level4)? = *below;
            f.page(top)?[0] = level4 | TABLE;
        }
        if let Some(Low(table)) = kernel.low {
            f.page(level4)?[0] = table | KERNEL_TABLE;
        }
        let mut space = Self { root: top | kernel.root_bits & !ADDRESS, level4, share: 0 };
        space.share = space.table(f, memory, TASK_SHARE_BASE)?.0;
        Some(space)
    }

    /// Lets the task read Linux's memory: maps the tables of the kernel's window again, with the user bit.
    pub fn open_window(&self, f: &mut impl Frames) {
        let Some(table) = f.page(self.level4) else { return };
        for i in 0..WINDOW_ENTRIES {
            let entry = table[KERNEL_WINDOW + i];
            // On a machine with very much memory the kernel's window overlaps the task's: the kernel keeps the entry.
            if entry & PRESENT != 0 && table[TASK_WINDOW + i] == 0 {
                table[TASK_WINDOW + i] = (entry | USER | NO_EXECUTE) & !WRITE;
            }
        }
    }

    /// The last-level table for `va`; makes missing tables. At boot only. `None` if memory runs out.
    pub fn table(&self, f: &mut impl Frames, memory: &mut Memory, va: u64) -> Option<Table> {
        descend(f, memory, self.level4, 4, va)
    }

    /// Maps the page `va` to `physical`. At boot only: makes missing tables. `None` if memory runs out.
    pub fn map(
        &self,
        f: &mut impl Frames,
        memory: &mut Memory,
        va: u64,
        physical: u64,
        flags: u64,
    ) -> Option<()> {
        self.table(f, memory, va)?.set(f, va, physical, flags)
    }

    /// The entry that maps `va` for the task: of a 4 KiB page, in a table of the cokernel's memory.
    fn leaf<'a>(&self, f: &'a mut impl Frames, va: u64) -> Option<&'a mut u64> {
        if va >> 47 != 0 {
            return None;
        }
        let mut table = self.level4;
        for level in (2..=4).rev() {
            let entry = f.page(table)?[index(va, level)];
            if entry & (PRESENT | USER | LARGE) != PRESENT | USER {
                return None;
            }
            table = entry & ADDRESS;
        }
        let entry = &mut f.page(table)?[index(va, 1)];
        (*entry & (PRESENT | USER) == PRESENT | USER).then_some(entry)
    }

    /// The physical page at `va`, if the task may read it, or write it if `write`.
    fn physical(&self, f: &mut impl Frames, va: u64, write: bool) -> Option<u64> {
        let entry = *self.leaf(f, va)?;
        (!write || entry & WRITE != 0).then_some(entry & ADDRESS)
    }

    /// Calls `part` for each page's part of the `bytes` bytes at `va`, in order. False if the task lacks access to one.
    fn walk<F: Frames>(
        &self,
        f: &mut F,
        va: u64,
        bytes: usize,
        write: bool,
        mut part: impl FnMut(&mut [u64; WORDS], usize, usize, usize),
    ) -> bool {
        let mut done = 0;
        while done < bytes {
            let Some(at) = va.checked_add(done as u64) else { return false };
            let start = (at % PAGE) as usize;
            let end = (start + bytes - done).min(PAGE as usize);
            let page = self.physical(f, at, write).and_then(|physical| f.page(physical));
            let Some(page) = page else { return false };
            part(page, start, end, done);
            done += end - start;
        }
        true
    }

    /// Copies words from the task's memory. False if `va` is not aligned or the task may not read all of it.
    pub fn read(&self, f: &mut impl Frames, va: u64, into: &mut [u64]) -> bool {
        va.is_multiple_of(8)
            && self.walk(f, va, into.len() * 8, false, |page, start, end, done| {
                let to = &mut into[done / 8..done / 8 + (end - start) / 8];
                to.copy_from_slice(&page[start / 8..end / 8]);
            })
    }

    /// Copies bytes from the task's memory. False if the task may not read all of it.
    pub fn read_bytes(&self, f: &mut impl Frames, va: u64, into: &mut [u8]) -> bool {
        self.walk(f, va, into.len(), false, |page, start, end, done| {
            for (i, at) in (start..end).enumerate() {
                into[done + i] = (page[at / 8] >> (8 * (at % 8))) as u8;
            }
        })
    }

    /// Copies words to the task's memory. False, and nothing is copied, if `va` is not aligned or the task may not
    /// write all of it.
    pub fn write(&self, f: &mut impl Frames, va: u64, from: &[u64]) -> bool {
        va.is_multiple_of(8)
            && self.walk(f, va, from.len() * 8, true, |_, _, _, _| {})
            && self.walk(f, va, from.len() * 8, true, |page, start, end, done| {
                page[start / 8..end / 8]
                    .copy_from_slice(&from[done / 8..done / 8 + (end - start) / 8]);
            })
    }

    /// Fills the page at `va` with `bytes` and zeros behind them, even if the task may only read it. At most a page.
    pub fn refill(&self, f: &mut impl Frames, va: u64, bytes: &[u8]) {
        if let Some(page) = self.physical(f, va, false).and_then(|physical| f.page(physical)) {
            page.fill(0);
            boot::copy(page, bytes);
        }
    }

    /// Sets the word at `va`, a multiple of 8, even if the task may only read it.
    pub fn set_word(&self, f: &mut impl Frames, va: u64, word: u64) {
        if let Some(page) = self.physical(f, va, false).and_then(|physical| f.page(physical)) {
            page[(va % PAGE / 8) as usize] = word;
        }
    }

    /// The entry of the page at `va`, if it can be shared: a page of the cokernel's memory.
    pub fn shareable(&self, f: &mut impl Frames, va: u64) -> Option<u64> {
        let entry = *self.leaf(f, va)?;
        f.page(entry & ADDRESS)?;
        va.is_multiple_of(PAGE).then_some(entry)
    }

    /// Unmaps the page at `va`.
    pub fn unmap(&self, f: &mut impl Frames, va: u64) {
        if let Some(entry) = self.leaf(f, va) {
            *entry = 0;
        }
    }

    fn share_slot<'a>(&self, f: &'a mut impl Frames, va: u64) -> Option<&'a mut u64> {
        if !is_share_page(va) {
            return None;
        }
        f.page(self.share).map(|table| &mut table[index(va, 1)])
    }

    /// Whether `va` is an unmapped page of the share window.
    pub fn is_free(&self, f: &mut impl Frames, va: u64) -> bool {
        self.share_slot(f, va).is_some_and(|slot| *slot == 0)
    }

    /// Maps the page of `entry`, which [`Space::shareable`] returned, at `va`, a free page of the share window.
    pub fn share(&self, f: &mut impl Frames, va: u64, entry: u64, write: bool) {
        let flags = if write && entry & WRITE != 0 { DATA } else { RODATA };
        if let Some(slot) = self.share_slot(f, va) {
            *slot = entry & ADDRESS | flags;
        }
    }
}

/// Whether the page of `entry` is writable.
pub fn is_writable(entry: u64) -> bool {
    entry & WRITE != 0
}

/// Whether `va` is a page of the share window.
pub fn is_share_page(va: u64) -> bool {
    va.is_multiple_of(PAGE) && (TASK_SHARE_BASE..TASK_SHARE_BASE + TASK_SHARE_BYTES).contains(&va)
}

#[cfg(test)]
mod tests;
