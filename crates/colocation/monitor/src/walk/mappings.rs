//! The kernel's half of the address space, as Linux's page tables map it.

use crate::kernel::{Kernel, FRAME, KERNEL_HALF, LARGE, PRESENT};
use crate::memory::KernelMemory;
use core::sync::atomic::Ordering::Relaxed;

/// Page-table entry bits: writable; of user mode; not executable. Intel SDM volume 3A, 4.5.
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const NOT_EXECUTABLE: u64 = 1 << 63;
/// Entries of a table.
const ENTRIES: u64 = 512;

/// A page of any size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub start: u64,
    /// Its physical address; 0 if it is not known.
    pub physical: u64,
    pub bytes: u64,
    pub is_writable: bool,
    pub is_executable: bool,
    /// User mode can reach it: with SMEP, the kernel cannot execute it.
    pub is_user: bool,
    /// False for all that a table maps which cannot be read.
    pub is_known: bool,
}

/// The entry that leads to `at` in the table at `level` (0 is the lowest).
fn index(at: u64, level: u32) -> u64 {
    at >> shift(level) & (ENTRIES - 1)
}

fn shift(level: u32) -> u32 {
    12 + 9 * level
}

/// Calls `see` with the pages from `at` on, up to the end of one table. Returns where the next part begins; `None`
/// behind the last one, or if the tables cannot be read.
pub(crate) fn scan_mappings<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    at: u64,
    see: &mut dyn FnMut(Mapping),
) -> Option<u64> {
    let (mut table, levels) = kernel.page_tables()?;
    // The upper half, where all bits above the tables' are set.
    let mut at = at.max(KERNEL_HALF).max(!0 << (shift(levels) - 1));
    let mut bits = WRITABLE | USER;
    for level in (0..levels).rev() {
        let Some(page) = kernel.memory.page(table & FRAME) else {
            let size = 1 << shift(level + 1);
            see(Mapping {
                start: at,
                physical: 0,
                bytes: size - (at & (size - 1)),
                is_writable: bits & WRITABLE != 0,
                is_executable: bits & NOT_EXECUTABLE == 0,
                is_user: bits & USER != 0,
                is_known: false,
            });
            return (at & !(size - 1)).checked_add(size);
        };
        let first = index(at, level);
        let size = 1 << shift(level);
        let mut next = None;
        for (entry, number) in
            page.iter().map(|word| word.load(Relaxed)).zip(0..).skip(first as usize)
        {
            if number > first {
                // The beginning of this entry's pages.
                at = (at & !(size - 1)).wrapping_add(size);
            }
            if entry & PRESENT == 0 {
                continue;
            }
            if level > 0 && (entry & LARGE == 0 || level > 2) {
                next = Some(entry);
                break;
            }
            see(Mapping {
                start: at & !(size - 1),
                physical: entry & FRAME & !(size - 1),
                bytes: size,
                is_writable: entry & bits & WRITABLE != 0,
                is_executable: (entry | bits) & NOT_EXECUTABLE == 0,
                is_user: entry & bits & USER != 0,
                is_known: true,
            });
        }
        let Some(entry) = next else {
            // Behind the last entry of this table; 0 behind the last table.
            return (at & !(size - 1)).checked_add(size);
        };
        bits = entry & bits & (WRITABLE | USER) | (entry | bits) & NOT_EXECUTABLE;
        table = entry;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{self, FakeMemory, TEXT, TEXT_PHYSICAL};
    use crate::profile::Profile;
    use std::vec::Vec;

    const TOP: u64 = TEXT + 0x1000;
    const LOWER: u64 = TEXT_PHYSICAL + 0x2000;

    /// Scans tables with these entries: (physical address of a table, entry, value).
    fn scan(entries: &[(u64, u64, u64)]) -> (Vec<Mapping>, usize) {
        let bytes = fake::profile(&[(TEXT, b'T', "_text"), (TOP, b'D', "init_top_pgt")], &[]);
        let profile = Profile::decode(&bytes).unwrap();
        let memory = FakeMemory::new(TEXT_PHYSICAL + fake::IMAGE_BYTES);
        for (table, entry, value) in entries {
            memory.set(table + 8 * entry, *value);
        }
        let kernel = Kernel::new(&profile, &memory);
        let (mut pages, mut at, mut parts) = (Vec::new(), Some(0), 0);
        while let Some(from) = at {
            at = scan_mappings(&kernel, from, &mut |page| pages.push(page));
            assert!(at.is_none_or(|next| next > from), "{at:x?} after {from:#x}");
            parts += 1;
        }
        (pages, parts)
    }

    fn top(entry: u64) -> (u64, u64, u64) {
        (fake::physical(TOP), entry, LOWER | 3)
    }

    #[test]
    fn pages_of_all_sizes_are_seen_once() {
        let (third, lowest) = (LOWER + 0x1000, LOWER + 0x2000);
        let (pages, parts) = scan(&[
            top(511),
            (LOWER, 3, 0x4000_0000 | 0x83),
            (LOWER, 510, third | 1),
            (third, 0, 0x20_0000 | 0x83),
            (third, 511, lowest | 3),
            (lowest, 0, 0x5001),
            (lowest, 511, 0x6003 | NOT_EXECUTABLE),
        ]);
        let page = |start, physical, bytes, is_writable, is_executable| Mapping {
            start,
            physical,
            bytes,
            is_writable,
            is_executable,
            is_user: false,
            is_known: true,
        };
        let base = 0xffff_ff80_0000_0000;
        let gigabyte = 1 << 30;
        assert_eq!(
            pages,
            [
                page(base + 3 * gigabyte, gigabyte, gigabyte, true, true),
                page(base + 510 * gigabyte, 0x20_0000, 1 << 21, false, true),
                page(base + 511 * gigabyte - (1 << 21), 0x5000, 4096, false, true),
                page(base + 511 * gigabyte - 4096, 0x6000, 4096, false, false),
            ]
        );
        assert!(parts < 8, "{parts}");
    }

    #[test]
    fn a_table_that_cannot_be_read_hides_only_what_it_maps() {
        let nowhere = 0x7fff_f000_0000;
        let page = (LOWER, 4, 0x4000_0000 | 0x83);
        for entries in [
            [top(511), (LOWER, 3, nowhere | 3), page],
            [(fake::physical(TOP), 510, nowhere | 3), top(511), page],
        ] {
            let (pages, parts) = scan(&entries);
            let known: Vec<_> =
                pages.iter().map(|page| (page.is_known, page.is_executable)).collect();
            assert_eq!(known.len(), 2, "{pages:?}");
            assert!(known.contains(&(true, true)) && known.contains(&(false, true)));
            assert!(parts < 8, "{parts}");
        }
    }

    #[test]
    fn no_table_is_followed_below_the_upper_half() {
        let (pages, _) = scan(&[top(255), (LOWER, 0, 0x83)]);
        assert_eq!(pages, []);
        let (pages, _) = scan(&[top(256), (LOWER, 0, 0x83)]);
        assert_eq!(pages.first().map(|page| page.start), Some(0xffff_8000_0000_0000));
    }

    #[test]
    fn a_table_that_contains_itself_ends() {
        let top = fake::physical(TOP);
        let (pages, parts) = scan(&[(top, 511, top | 3)]);
        assert_eq!(pages.len(), 1);
        assert!(parts < 8, "{parts}");
        let pages = scan(&[(top, 511, !0 << 12 | 3)]).0;
        assert!(pages.iter().all(|page| !page.is_known && !page.is_executable));
    }
}
