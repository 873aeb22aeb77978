//! Page tables of a guest (Intel SDM volume 3, 4.5; AMD APM volume 2, 5.3): 4 levels, 4 KiB and 2 MiB pages.
//!
//! They start at [`system::TABLES`] in the tender's pages and do not map themselves.

use crate::error::{ensure, Result};
use crate::layout::{system, LARGE_PAGE, PAGE, SYSTEM_BYTES};
use crate::memory::Block;
use vm_memory::VolatileMemory;

const PRESENT: u64 = 1;
const WRITE: u64 = 2;
const USER: u64 = 4;
/// Set in advance, so that the processor never writes to the tables and KVM need not track such writes.
const ACCESSED_DIRTY: u64 = 0x60;
const LARGE: u64 = 0x80;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0xf_ffff_ffff_f000;

/// The guest's access to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only the processor reads it, for its descriptors.
    Hidden,
    /// The guest reads.
    Read,
    /// The guest reads and writes.
    Write,
    /// The guest reads and executes.
    Execute,
}

impl Access {
    fn bits(self) -> u64 {
        PRESENT
            | ACCESSED_DIRTY
            | match self {
                Self::Hidden => NO_EXECUTE,
                Self::Read => USER | NO_EXECUTE,
                Self::Write => USER | WRITE | NO_EXECUTE,
                Self::Execute => USER,
            }
    }
}

/// Guest-physical address of the guest's block. KVM itself adds pages below 4 GiB if the processor virtualizes accesses
/// to the local APIC or cannot run real mode (linux: arch/x86/kvm, `APIC_ACCESS_PAGE_PRIVATE_MEMSLOT` and
/// `IDENTITY_PAGETABLE_PRIVATE_MEMSLOT`).
pub const BLOCK_BASE: u64 = 1 << 32;

/// Offset of a table's entry in the block, in bytes.
fn offset(table: u64, index: u64) -> usize {
    (table - BLOCK_BASE + index * 8) as usize
}

/// The page tables of one guest.
#[derive(Debug)]
pub struct PageTables {
    system: Block,
    /// Offset of the first unused page, in bytes.
    next: u64,
}

impl PageTables {
    /// Empty tables in the block `system`, which begins at the guest-physical address [`BLOCK_BASE`].
    pub fn new(system: Block) -> Self {
        Self { system, next: system::TABLES + PAGE }
    }

    /// Physical address of the top table, for CR3.
    pub fn root(&self) -> u64 {
        BLOCK_BASE + system::TABLES
    }

    fn entry(&self, table: u64, index: u64) -> Result<u64> {
        Ok(self.system.get_ref::<u64>(offset(table, index))?.load())
    }

    fn set(&self, table: u64, index: u64, value: u64) -> Result<()> {
        self.system.get_ref::<u64>(offset(table, index))?.store(value);
        Ok(())
    }

    /// The table that an entry points to; allocated if the entry is empty.
    fn next_level(&mut self, table: u64, index: u64) -> Result<u64> {
        let entry = self.entry(table, index)?;
        ensure!(Backend, entry & LARGE == 0, "the page-table entry already maps a large page");
        if entry & PRESENT != 0 {
            return Ok(entry & ADDRESS);
        }
        ensure!(
            Backend,
            self.next < SYSTEM_BYTES,
            "no space left for page tables: use fewer or smaller regions"
        );
        let new = BLOCK_BASE + self.next;
        self.next += PAGE;
        self.set(table, index, new | PRESENT | WRITE | USER | ACCESSED_DIRTY)?;
        Ok(new)
    }

    /// Maps `bytes` bytes at the virtual address `base` to the guest-physical address `physical`. All three are
    /// multiples of a page and below 512 GiB. Aligned parts get large pages.
    ///
    /// # Errors
    ///
    /// An address is too high, the range overlaps a large page, or no space is left for tables.
    pub fn map(&mut self, base: u64, physical: u64, bytes: u64, access: Access) -> Result<()> {
        let mut done = 0;
        while done < bytes {
            let (at, target) = (base + done, physical + done);
            let directory = self.directory(at)?;
            let index = at >> 21 & 511;
            let large = (at | target) % LARGE_PAGE == 0 && bytes - done >= LARGE_PAGE;
            if large && self.entry(directory, index)? == 0 {
                self.set(directory, index, target | LARGE | access.bits())?;
                done += LARGE_PAGE;
            } else {
                let table = self.next_level(directory, index)?;
                self.set(table, at >> 12 & 511, target | access.bits())?;
                done += PAGE;
            }
        }
        Ok(())
    }

    /// Unmaps `bytes` bytes at the virtual address `base`. The tables stay allocated for the next mapping there.
    ///
    /// # Errors
    ///
    /// An address is too high, or no space is left for tables.
    pub fn unmap(&mut self, base: u64, bytes: u64) -> Result<()> {
        let mut done = 0;
        while done < bytes {
            let at = base + done;
            let directory = self.directory(at)?;
            let index = at >> 21 & 511;
            match self.entry(directory, index)? {
                0 => done += LARGE_PAGE - at % LARGE_PAGE,
                entry if entry & LARGE != 0 => {
                    self.set(directory, index, 0)?;
                    done += LARGE_PAGE;
                }
                entry => {
                    self.set(entry & ADDRESS, at >> 12 & 511, 0)?;
                    done += PAGE;
                }
            }
        }
        Ok(())
    }

    fn directory(&mut self, at: u64) -> Result<u64> {
        ensure!(Backend, at >> 39 == 0, "{at:#x} is not below 512 GiB");
        let pointers = self.next_level(self.root(), 0)?;
        self.next_level(pointers, at >> 30)
    }

    /// The physical address and the access bits that the processor would find.
    #[cfg(test)]
    fn find(&self, at: u64) -> Option<(u64, u64)> {
        let mut table = self.root();
        for (shift, last) in [(39, false), (30, false), (21, false), (12, true)] {
            let entry = self.entry(table, at >> shift & 511).unwrap();
            if entry & PRESENT == 0 {
                return None;
            }
            if last || entry & LARGE != 0 {
                let inside = at & ((1 << shift) - 1);
                return Some(((entry & ADDRESS) + inside, entry & (NO_EXECUTE | USER | WRITE)));
            }
            table = entry & ADDRESS;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::block;

    #[test]
    fn only_mapped_ranges_are_found() {
        let mut tables = PageTables::new(block(SYSTEM_BYTES, None).unwrap());
        let (base, target) = (0x20_0000_0000, 1 << 32);
        // One page, two large pages, and one page.
        tables.map(base - PAGE, target - PAGE, 2 * LARGE_PAGE + 2 * PAGE, Access::Write).unwrap();
        tables.map(0x10_0000_0000, 0x5000, PAGE, Access::Execute).unwrap();
        for offset in [0, 5, LARGE_PAGE, 2 * LARGE_PAGE + PAGE - 1] {
            assert_eq!(
                tables.find(base + offset),
                Some((target + offset, USER | WRITE | NO_EXECUTE)),
                "{offset:#x}"
            );
        }
        assert_eq!(tables.find(base - 1), Some((target - 1, USER | WRITE | NO_EXECUTE)));
        assert_eq!(tables.find(0x10_0000_0010), Some((0x5010, USER)));
        for outside in [0, base - PAGE - 1, base + 2 * LARGE_PAGE + PAGE, 0x10_0000_1000] {
            assert_eq!(tables.find(outside), None, "{outside:#x}");
        }
        tables.unmap(base, 2 * LARGE_PAGE).unwrap();
        assert_eq!((tables.find(base), tables.find(base + LARGE_PAGE)), (None, None));
        assert!(tables.find(base - 1).is_some() && tables.find(base + 2 * LARGE_PAGE).is_some());
        // The same range again, with small pages.
        tables.map(base, target, PAGE, Access::Read).unwrap();
        tables.map(base + PAGE, target + PAGE, LARGE_PAGE - PAGE, Access::Write).unwrap();
        assert_eq!(tables.find(base), Some((target, USER | NO_EXECUTE)));
        assert_eq!(tables.find(base + LARGE_PAGE - 1).unwrap().0, target + LARGE_PAGE - 1);
    }

    #[test]
    fn high_addresses_and_full_tables_are_refused() {
        let mut tables = PageTables::new(block(SYSTEM_BYTES, None).unwrap());
        assert!(tables.map(1 << 39, 0, PAGE, Access::Read).is_err());
        let full = (0..512).find_map(|i| tables.map(i << 21, 0, PAGE, Access::Read).err());
        assert!(full.unwrap().to_string().contains("no space left for page tables"));
    }
}
