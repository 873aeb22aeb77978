//! One CPU's own view of a guest's memory, in which decoys replace a few pages of the tables that all CPUs share.
//!
//! One instruction runs in the view, on decoys, while other CPUs use the real pages. The tables that lead to each decoy
//! are copied into pages that were allocated at the start; the other tables are shared.
//!
//! The copies do not follow the shared tables: while a view is in use nothing may be unmapped there, and what is mapped
//! there must be shown here too, or the view reset. Before a CPU runs the guest with a view, and before it runs it
//! without, it flushes the guest (APM 2, 15.16) or uses another ASID. The same applies after an addition to an active
//! view.

use super::nested::{self, Nested, Rights, ADDRESS};
use crate::frames::Frames;

/// Tables of a view: the top one, and those of four levels for four pages that share no more than it.
pub const TABLES: usize = 1 + 4 * 4;

/// A view of one CPU.
#[derive(Debug)]
pub struct Step {
    tables: [u64; TABLES],
    used: usize,
}

impl Step {
    /// An empty view. `None` if memory ran out.
    pub fn new(frames: &mut impl Frames) -> Option<Self> {
        let mut tables = [0; TABLES];
        for table in &mut tables {
            *table = frames.page()?;
        }
        Some(Self { tables, used: 0 })
    }

    /// Physical address of the view's top table, for nCR3. `None` if the view is empty.
    pub fn root(&self) -> Option<u64> {
        (self.used > 0).then_some(self.tables[0])
    }

    /// Empties the view. The tables are overwritten when they are used again.
    pub fn reset(&mut self) {
        self.used = 0;
    }

    /// Shows the page at `to_page` in place of `gpa`'s 4 KiB page, in addition to the pages shown already. Everything
    /// else is as in `shared`, which must be the same until [`Step::reset`] and has its tables in `frames` too.
    ///
    /// False if tables have run out, `to_page` is not a page's address or `gpa` is beyond the limit; the view does not
    /// change then.
    pub fn show(
        &mut self,
        frames: &mut impl Frames,
        shared: &Nested,
        gpa: u64,
        to_page: u64,
        rights: Rights,
    ) -> bool {
        if to_page & !ADDRESS != 0 || gpa >= shared.limit() {
            return false;
        }
        let Some(table) = self.path(frames, shared, gpa) else { return false };
        *frames.entry(table, nested::index(gpa, 1)) = nested::leaf(to_page, Some(rights), 1);
        true
    }

    /// Shows what `shared` maps at `gpa` since the view was made, as [`Nested::ensure`] does with [`Rights::ALL`]. A
    /// decoy stays. Without this, the instruction in the view would fault there for ever.
    pub fn follow(&mut self, frames: &mut impl Frames, shared: &Nested, gpa: u64) {
        let (mut own, mut theirs) = (self.tables[0], Some(shared.root()));
        for level in (1..=shared.levels()).rev() {
            let at = nested::index(gpa, level);
            let entry = *frames.entry(own, at);
            let new = theirs.map(|table| *frames.entry(table, at));
            if nested::is_table(entry, level) && self.tables.contains(&(entry & ADDRESS)) {
                own = entry & ADDRESS;
                theirs = new.filter(|e| nested::is_table(*e, level)).map(|e| e & ADDRESS);
                continue;
            }
            if entry == 0 {
                // If they map a page that is split here, this is its part.
                let start = gpa & !(nested::span(level) - 1);
                *frames.entry(own, at) =
                    new.unwrap_or_else(|| nested::leaf(start, Some(Rights::ALL), level));
            }
            return;
        }
    }

    /// The view's own table of the lowest level for `gpa`.
    fn path(&mut self, frames: &mut impl Frames, shared: &Nested, gpa: u64) -> Option<u64> {
        if self.used == 0 {
            frames.copy(self.tables[0], shared.root());
            self.used = 1;
        }
        let mut table = self.tables[0];
        for level in (2..=shared.levels()).rev() {
            table = self.below(frames, table, gpa, level)?;
        }
        Some(table)
    }

    /// The view's own table below its `table`.
    fn below(&mut self, f: &mut impl Frames, table: u64, gpa: u64, level: u32) -> Option<u64> {
        let entry = *f.entry(table, nested::index(gpa, level));
        if nested::is_table(entry, level) && self.tables.contains(&(entry & ADDRESS)) {
            return Some(entry & ADDRESS);
        }
        let page = *self.tables.get(self.used)?;
        self.used += 1;
        nested::copy(f, page, entry, level);
        nested::link(f, table, gpa, level, page);
        Some(page)
    }
}

#[cfg(test)]
mod tests;
