//! Page tables of a guest (Intel SDM volume 3, 4.5; AMD APM volume 2, 5.3): 4 levels, 4 KiB and 2 MiB pages.
//!
//! They lie in the tender's pages, from [`system::TABLES`] on, and map none of themselves.

use crate::error::{ensure, Result};
use crate::layout::{system, LARGE_PAGE, PAGE, SYSTEM_BYTES};
use crate::memory::Block;
use vm_memory::VolatileMemory;

const PRESENT: u64 = 1;
const WRITE: u64 = 2;
const USER: u64 = 4;
/// Set beforehand: KVM's own page tables need not follow the guest's writes of them, as there are none.
const ACCESSED_DIRTY: u64 = 0x60;
const LARGE: u64 = 0x80;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0xf_ffff_ffff_f000;

/// Access to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// The processor reads it for itself, the guest nothing.
    Hidden,
    /// The guest reads.
    Read,
    /// The guest reads and writes.
    Write,
    /// The guest reads and executes.
    Execute,
}

impl Right {
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

/// Physical address of the guest's block. Below 4 GiB lie pages that KVM itself adds to a machine where the processor
/// virtualizes accesses to the local APIC, or cannot run real mode (linux: arch/x86/kvm,
/// `APIC_ACCESS_PAGE_PRIVATE_MEMSLOT` and `IDENTITY_PAGETABLE_PRIVATE_MEMSLOT`).
pub const BLOCK_BASE: u64 = 1 << 32;

/// Where an entry of a table lies in the block.
fn offset(table: u64, index: u64) -> usize {
    (table - BLOCK_BASE + index * 8) as usize
}

/// The tables of one guest.
#[derive(Debug)]
pub struct PageTables {
    system: Block,
    next: u64,
}

impl PageTables {
    /// Tables that map nothing. The tender's pages are the guest's physical memory from [`BLOCK_BASE`] on.
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

    /// The table that an entry leads to, made where there is none.
    fn below(&mut self, table: u64, index: u64) -> Result<u64> {
        let entry = self.entry(table, index)?;
        ensure!(Backend, entry & LARGE == 0, "a page table where a large page is");
        if entry & PRESENT != 0 {
            return Ok(entry & ADDRESS);
        }
        ensure!(
            Backend,
            self.next < SYSTEM_BYTES,
            "no room for page tables: use fewer or smaller regions"
        );
        let new = BLOCK_BASE + self.next;
        self.next += PAGE;
        self.set(table, index, new | PRESENT | WRITE | USER | ACCESSED_DIRTY)?;
        Ok(new)
    }

    /// Maps `bytes` bytes at the virtual address `base` to the physical address `physical`; all are multiples of a
    /// page and below 512 GiB. Where all is aligned to it, by large pages.
    pub fn map(&mut self, base: u64, physical: u64, bytes: u64, right: Right) -> Result<()> {
        let mut done = 0;
        while done < bytes {
            let (at, to) = (base + done, physical + done);
            let directory = self.directory(at)?;
            let index = at >> 21 & 511;
            let large = (at | to) % LARGE_PAGE == 0 && bytes - done >= LARGE_PAGE;
            if large && self.entry(directory, index)? == 0 {
                self.set(directory, index, to | LARGE | right.bits())?;
                done += LARGE_PAGE;
            } else {
                let table = self.below(directory, index)?;
                self.set(table, at >> 12 & 511, to | right.bits())?;
                done += PAGE;
            }
        }
        Ok(())
    }

    /// Takes a mapping away. Tables stay, for the next one there.
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
        let pointers = self.below(self.root(), 0)?;
        self.below(pointers, at >> 30)
    }

    /// Where an address leads to, and by which right: what the processor would find.
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
    fn what_is_mapped_is_found_and_nothing_else() {
        let mut tables = PageTables::new(block(SYSTEM_BYTES, None).unwrap());
        let (base, to) = (0x20_0000_0000, 1 << 32);
        // A page before, two large ones, and a page behind.
        tables.map(base - PAGE, to - PAGE, 2 * LARGE_PAGE + 2 * PAGE, Right::Write).unwrap();
        tables.map(0x10_0000_0000, 0x5000, PAGE, Right::Execute).unwrap();
        for offset in [0, 5, LARGE_PAGE, 2 * LARGE_PAGE + PAGE - 1] {
            assert_eq!(
                tables.find(base + offset),
                Some((to + offset, USER | WRITE | NO_EXECUTE)),
                "{offset:#x}"
            );
        }
        assert_eq!(tables.find(base - 1), Some((to - 1, USER | WRITE | NO_EXECUTE)));
        assert_eq!(tables.find(0x10_0000_0010), Some((0x5010, USER)));
        for outside in [0, base - PAGE - 1, base + 2 * LARGE_PAGE + PAGE, 0x10_0000_1000] {
            assert_eq!(tables.find(outside), None, "{outside:#x}");
        }
        tables.unmap(base, 2 * LARGE_PAGE).unwrap();
        assert_eq!((tables.find(base), tables.find(base + LARGE_PAGE)), (None, None));
        assert!(tables.find(base - 1).is_some() && tables.find(base + 2 * LARGE_PAGE).is_some());
        // Again, with small pages in between.
        tables.map(base, to, PAGE, Right::Read).unwrap();
        tables.map(base + PAGE, to + PAGE, LARGE_PAGE - PAGE, Right::Write).unwrap();
        assert_eq!(tables.find(base), Some((to, USER | NO_EXECUTE)));
        assert_eq!(tables.find(base + LARGE_PAGE - 1).unwrap().0, to + LARGE_PAGE - 1);
    }

    #[test]
    fn what_cannot_be_mapped_is_refused() {
        let mut tables = PageTables::new(block(SYSTEM_BYTES, None).unwrap());
        assert!(tables.map(1 << 39, 0, PAGE, Right::Read).is_err());
        let full = (0..512).find_map(|i| tables.map(i << 21, 0, PAGE, Right::Read).err());
        assert!(full.unwrap().to_string().contains("no room for page tables"));
    }
}
