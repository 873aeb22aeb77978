//! Nested page tables: guest-physical address = physical address, except for remapped pages.
//!
//! Reference: AMD APM 2, 15.25. The depth is that of the host's paging at VMRUN. The processor walks these tables as
//! user mode does, so every present entry has the user bit (15.25.5). Execution is forbidden by bit 63, which is
//! reserved if the host's EFER.NXE is clear.
//!
//! An entry that is not present is 0 if its page was never mapped, and [`ABSENT`] if it was unmapped on purpose.
//!
//! Callers hold other CPUs off while they change tables; processors may walk them meanwhile, as a new table is filled
//! before it can be found. After a change of what was present, every CPU that ran the guest must flush it (TLB_CONTROL,
//! 15.16); entries that were not present are in no TLB. Tables are never freed: a split page stays split.

mod entry;

pub use entry::{Rights, ABSENT, ADDRESS, NO_EXECUTE, PAGE, PRESENT, UNCACHED, WRITE};

use crate::frames::Frames;
pub(super) use entry::{copy, index, is_table, leaf, link, span};
use kyozon_abi::layer::Range;

/// The tables of a guest. `&self` is enough to change them: the entries are in the frames.
#[derive(Clone, Copy, Debug)]
pub struct Nested {
    root: u64,
    levels: u32,
    leaf: u32,
}

impl Nested {
    /// Tables that map nothing. `levels`: those of the host's paging, 4 or 5. `leaf`: the level of the largest pages
    /// that the processor has, 3 for 1 GiB or 2 for 2 MiB. `None` for other numbers, and if memory ran out.
    pub fn new(frames: &mut impl Frames, levels: u32, leaf: u32) -> Option<Self> {
        if !matches!((levels, leaf), (4 | 5, 2 | 3)) {
            return None;
        }
        Some(Self { root: frames.page()?, levels, leaf })
    }

    /// Physical address of the top table, for nCR3.
    pub fn root(&self) -> u64 {
        self.root
    }

    /// Levels of tables.
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// End of what can be mapped: 2^48 bytes with 4 levels, else all that an entry can name.
    pub fn limit(&self) -> u64 {
        if self.levels == 4 {
            1 << 48
        } else {
            ADDRESS + PAGE
        }
    }

    /// Maps `range` to itself, or unmaps it if `rights` is `None`, with the largest pages that fit. Existing tables
    /// stay, and so do larger pages with the same rights.
    ///
    /// `None` if the range does not consist of whole pages below [`Nested::limit`] (then nothing was changed), or
    /// memory ran out (then a first part of it was changed).
    pub fn map(
        &self,
        frames: &mut impl Frames,
        range: Range,
        rights: Option<Rights>,
    ) -> Option<()> {
        let end = range.base.checked_add(range.bytes)?;
        if !(range.base | end).is_multiple_of(PAGE) || end > self.limit() {
            return None;
        }
        let mut at = range.base;
        while at < end {
            at = self.map_leaf(frames, at, end, rights)?;
        }
        Some(())
    }

    /// Maps one leaf at `at` and returns its end, which is beyond `end` if a larger leaf had the same rights already.
    fn map_leaf(
        &self,
        frames: &mut impl Frames,
        at: u64,
        end: u64,
        rights: Option<Rights>,
    ) -> Option<u64> {
        let (mut table, mut level) = (self.root, self.levels);
        loop {
            let entry = *frames.entry(table, index(at, level));
            let start = at & !(span(level) - 1);
            let wanted = leaf(start, rights, level);
            if level <= self.leaf && !is_table(entry, level) {
                let fits = start == at && end - at >= span(level);
                if fits {
                    *frames.entry(table, index(at, level)) = wanted;
                }
                if fits || entry == wanted {
                    return Some(start + span(level));
                }
            }
            table = descend(frames, table, at, level)?;
            level -= 1;
        }
    }

    /// Maps the 4 KiB page of `gpa` to the one at `to_page`. `None` if that is not a page's address, `gpa` is beyond
    /// the limit, or memory ran out; the guest sees no change then.
    pub fn remap(
        &self,
        frames: &mut impl Frames,
        gpa: u64,
        to_page: u64,
        rights: Rights,
    ) -> Option<()> {
        if to_page & !ADDRESS != 0 || gpa >= self.limit() {
            return None;
        }
        let mut table = self.root;
        for level in (2..=self.levels).rev() {
            table = descend(frames, table, gpa, level)?;
        }
        *frames.entry(table, index(gpa, 1)) = leaf(to_page, Some(rights), 1);
        Some(())
    }

    /// The level and the entry that decide about `gpa`: one that maps it, or [`ABSENT`]. `None` if it was never mapped,
    /// or is beyond the limit.
    pub fn lookup(&self, frames: &mut impl Frames, gpa: u64) -> Option<(u32, u64)> {
        if gpa >= self.limit() {
            return None;
        }
        Some(walk(frames, self.root, self.levels, gpa)).filter(|w| w.1 != 0)
    }

    /// Maps the largest leaf around `gpa` to itself in which no page was ever mapped or unmapped. False if `gpa` itself
    /// was mapped or unmapped before, or is beyond the limit: then the guest must not reach it, or not in that way.
    /// `None` if memory ran out; the guest sees no change then.
    pub fn ensure(&self, frames: &mut impl Frames, gpa: u64, rights: Rights) -> Option<bool> {
        if gpa >= self.limit() {
            return Some(false);
        }
        let (mut table, mut level) = (self.root, self.levels);
        loop {
            let entry = *frames.entry(table, index(gpa, level));
            if entry == 0 && level <= self.leaf {
                let start = gpa & !(span(level) - 1);
                *frames.entry(table, index(gpa, level)) = leaf(start, Some(rights), level);
                return Some(true);
            }
            if entry != 0 && !is_table(entry, level) {
                return Some(false);
            }
            table = descend(frames, table, gpa, level)?;
            level -= 1;
        }
    }
}

/// The table below `table`'s entry of `level` for `gpa`. If the entry is a leaf or absent, a table with the same
/// meaning replaces it.
fn descend(frames: &mut impl Frames, table: u64, gpa: u64, level: u32) -> Option<u64> {
    let entry = *frames.entry(table, index(gpa, level));
    if is_table(entry, level) {
        return Some(entry & ADDRESS);
    }
    let page = frames.page()?;
    copy(frames, page, entry, level);
    link(frames, table, gpa, level, page);
    Some(page)
}

/// Level and value of the entry at which the processor's walk for `gpa` ends.
pub(super) fn walk(frames: &mut impl Frames, root: u64, levels: u32, gpa: u64) -> (u32, u64) {
    let (mut table, mut level) = (root, levels);
    loop {
        let entry = *frames.entry(table, index(gpa, level));
        if !is_table(entry, level) {
            return (level, entry);
        }
        (table, level) = (entry & ADDRESS, level - 1);
    }
}

#[cfg(test)]
mod tests;
