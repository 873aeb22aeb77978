//! Page tables of four levels, 4 KiB pages. Intel SDM 3A 4.5; AMD APM 2 5.3.

use crate::frames::Frames;

const PRESENT: u64 = 1;
const WRITE: u64 = 1 << 1;
const UNCACHED: u64 = 1 << 3 | 1 << 4;
const ACCESSED_DIRTY: u64 = 1 << 5 | 1 << 6;
const NO_EXECUTE: u64 = 1 << 63;
/// The bits of an entry that hold an address.
pub const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// Read and execute. These rights, and all entries of the tables above, are for the supervisor only.
pub const TEXT: u64 = PRESENT | ACCESSED_DIRTY;
/// Read.
pub const RODATA: u64 = PRESENT | ACCESSED_DIRTY | NO_EXECUTE;
/// Read and write.
pub const DATA: u64 = RODATA | WRITE;
/// Read and write a device's registers.
pub const DEVICE: u64 = DATA | UNCACHED;

/// Maps the page `va` to `pa`, in the tables under `top`. `None` if memory ran out.
pub fn map(frames: &mut impl Frames, top: u64, va: u64, pa: u64, flags: u64) -> Option<()> {
    let mut table = top;
    for level in (2..=4).rev() {
        let index = index(va, level);
        if *frames.entry(table, index) == 0 {
            let page = frames.page()?;
            *frames.entry(table, index) = page | PRESENT | WRITE | ACCESSED_DIRTY;
        }
        table = *frames.entry(table, index) & ADDRESS;
    }
    *frames.entry(table, index(va, 1)) = pa | flags;
    Some(())
}

fn index(va: u64, level: u32) -> usize {
    (va >> (3 + 9 * level) & 511) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::fake::Fake;

    fn walk(f: &mut Fake, top: u64, va: u64) -> u64 {
        (1..=4).rev().fold(top, |table, level| *f.entry(table & ADDRESS, index(va, level)))
    }

    #[test]
    fn mapped_pages_are_found() {
        let mut f = Fake::new(64);
        let top = f.page().unwrap();
        for (va, flags) in [(0x2000_0000, TEXT), (0x2000_1000, DATA), (0x4000_0000_0000, RODATA)] {
            map(&mut f, top, va, va >> 4, flags).unwrap();
        }
        for (va, flags) in [(0x2000_0000, TEXT), (0x2000_1000, DATA), (0x4000_0000_0000, RODATA)] {
            assert_eq!(walk(&mut f, top, va), va >> 4 | flags);
        }
        assert_eq!(walk(&mut f, top, 0x2000_2000), 0);
        assert_eq!(f.0.len(), 7, "one table of the top level, two of each other");
        assert!(f.0.values().flatten().all(|e| e & 4 == 0), "user mode sees none");
    }

    #[test]
    fn out_of_memory_is_an_error() {
        let mut f = Fake::new(3);
        let top = f.page().unwrap();
        assert!(map(&mut f, top, 0, 0, TEXT).is_none());
    }
}
