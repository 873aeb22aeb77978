//! Memory that the kernel maps for a task in addition to its image: the loader's data and Linux's memory.

use crate::{linux, Result};
use core::arch::asm;
use core::cell::Cell;
use core::sync::atomic::AtomicU64;
use kyozon_abi::layer::{Range, Window, MAX_RANGES};
use kyozon_abi::task::{StartInfo, TASK_WINDOW_BASE, TASK_WINDOW_BYTES};

/// The loader's data, unchecked. Empty if there is none, and for every task except the first.
pub fn loaded(info: &'static StartInfo) -> &'static [u8] {
    if info.data_bytes == 0 {
        return &[];
    }
    // SAFETY: the kernel maps it read-only until the task ends; `info` is the kernel's page, see `start`.
    unsafe { core::slice::from_raw_parts(info.data as *const u8, info.data_bytes as usize) }
}

/// The kept memory, as words: zeros at the first start; a restart does not change it. Empty for every task except the
/// first. A word is written at once; a restart may come between two writes.
pub fn kept(info: &'static StartInfo) -> &'static [AtomicU64] {
    if info.kept_bytes == 0 {
        return &[];
    }
    // SAFETY: the kernel maps it until the task ends, aligned; nothing else in the task uses it.
    unsafe {
        core::slice::from_raw_parts(info.kept as *const AtomicU64, info.kept_bytes as usize / 8)
    }
}

/// Linux's System RAM by physical address. Each read returns the current content.
///
/// Linux runs between ticks, and on its other CPUs at all times: two reads of a word may differ.
pub struct LinuxMemory {
    ram: Ram,
}

impl LinuxMemory {
    /// Gets the window.
    ///
    /// # Errors
    ///
    /// This task lacks the right to read Linux's memory, or there is no Linux.
    pub fn open() -> Result<Self> {
        Ok(Self { ram: Ram::new(&linux::window()?) })
    }

    /// The readable ranges, ascending.
    pub fn ram(&self) -> &[Range] {
        self.ram.as_slice()
    }

    /// The word at `physical`, a multiple of 8; `None` if it is not in Linux's RAM.
    #[inline]
    pub fn word(&self, physical: u64) -> Option<u64> {
        let good = physical.is_multiple_of(8) && self.ram.contains(physical, 8);
        // SAFETY: in the window, aligned.
        good.then(|| unsafe { word(physical) })
    }

    /// The page at `physical`, a multiple of 4096; `None` if it is not in Linux's RAM. Linux may write to it at any
    /// time; a write by this task would fault.
    #[inline]
    pub fn page(&self, physical: u64) -> Option<&[AtomicU64; 512]> {
        let good = physical.is_multiple_of(4096) && self.ram.contains(physical, 4096);
        // SAFETY: in the window, aligned, and mapped until the task ends. Atomics, since other CPUs write to
        // it; 8-byte loads work without write access.
        good.then(|| unsafe { &*((TASK_WINDOW_BASE + physical) as *const [AtomicU64; 512]) })
    }

    /// Whether the page at `physical` has other words than `copy`. Else as [`page`](Self::page). Only for the first
    /// task: it uses the vector registers.
    #[inline]
    pub fn differs(&self, physical: u64, copy: &[u64; 512]) -> Option<bool> {
        Some(differs(self.page(physical)?, copy))
    }

    /// The blocks of 64 bytes in which the page at `physical` has other words than `copy`: a bit for each, the lowest
    /// for the first. Else as [`differs`](Self::differs).
    #[inline]
    pub fn differing_blocks(&self, physical: u64, copy: &[u64; 512]) -> Option<u64> {
        Some(differing_blocks(self.page(physical)?, copy))
    }

    /// Copies bytes starting at `physical`; reads each aligned word once. Returns false and leaves `into` unchanged if
    /// not all of them are in Linux's RAM.
    pub fn read(&self, physical: u64, into: &mut [u8]) -> bool {
        if !self.ram.contains(physical, into.len() as u64) {
            return false;
        }
        let mut at = physical;
        let mut rest = into;
        while !rest.is_empty() {
            let skip = (at % 8) as usize;
            let (now, later) = rest.split_at_mut(rest.len().min(8 - skip));
            // SAFETY: the aligned word that contains a byte of the window: ranges begin and end on pages.
            let bytes = unsafe { word(at - skip as u64) }.to_le_bytes();
            now.copy_from_slice(&bytes[skip..skip + now.len()]);
            at += now.len() as u64;
            rest = later;
        }
        true
    }
}

/// Whether `live` has other words than `copy`; `live` begins at a multiple of 16.
fn differs(live: &[AtomicU64; 512], copy: &[u64; 512]) -> bool {
    const BLOCK: usize = 128;
    let from = live.as_ptr();
    assert!(from.addr().is_multiple_of(16), "a page begins at a page boundary");
    let equal: usize;
    // SAFETY: reads both pages to their ends, 128 bytes at a time; `live` is aligned as PXOR needs it, and what other
    // CPUs write there meanwhile is no Rust value here. The compiler uses no vector register in a task.
    unsafe {
        asm!(
            "pxor xmm4, xmm4",
            "2:",
            "movdqu xmm0, [{copy}]", "movdqu xmm1, [{copy} + 16]",
            "movdqu xmm2, [{copy} + 32]", "movdqu xmm3, [{copy} + 48]",
            "pxor xmm0, [{live}]", "pxor xmm1, [{live} + 16]",
            "pxor xmm2, [{live} + 32]", "pxor xmm3, [{live} + 48]",
            "por xmm4, xmm0", "por xmm4, xmm1", "por xmm4, xmm2", "por xmm4, xmm3",
            "movdqu xmm0, [{copy} + 64]", "movdqu xmm1, [{copy} + 80]",
            "movdqu xmm2, [{copy} + 96]", "movdqu xmm3, [{copy} + 112]",
            "pxor xmm0, [{live} + 64]", "pxor xmm1, [{live} + 80]",
            "pxor xmm2, [{live} + 96]", "pxor xmm3, [{live} + 112]",
            "por xmm4, xmm0", "por xmm4, xmm1", "por xmm4, xmm2", "por xmm4, xmm3",
            "add {copy}, {block}",
            "add {live}, {block}",
            "dec {blocks:e}",
            "jnz 2b",
            "pxor xmm0, xmm0",
            "pcmpeqd xmm4, xmm0",
            "pmovmskb {blocks:e}, xmm4",
            copy = inout(reg) copy.as_ptr() => _, live = inout(reg) from => _,
            blocks = inout(reg) size_of_val(copy) / BLOCK => equal, block = const BLOCK,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
            options(nostack, readonly)
        );
    }
    equal != 0xffff
}

/// A bit for each block of 64 bytes in which `live`, which begins at a multiple of 16, has other words than `copy`.
fn differing_blocks(live: &[AtomicU64; 512], copy: &[u64; 512]) -> u64 {
    let from = live.as_ptr();
    assert!(from.addr().is_multiple_of(16), "a page begins at a page boundary");
    let mut blocks = 0;
    // SAFETY: as in `differs`, with 64 bytes at a time.
    unsafe {
        asm!(
            "pxor xmm4, xmm4",
            "2:",
            "movdqu xmm0, [{copy}]", "movdqu xmm1, [{copy} + 16]",
            "movdqu xmm2, [{copy} + 32]", "movdqu xmm3, [{copy} + 48]",
            "pxor xmm0, [{live}]", "pxor xmm1, [{live} + 16]",
            "pxor xmm2, [{live} + 32]", "pxor xmm3, [{live} + 48]",
            "por xmm0, xmm1", "por xmm2, xmm3", "por xmm0, xmm2",
            "pcmpeqd xmm0, xmm4",
            "pmovmskb {equal:e}, xmm0",
            // Carry if it is not 0xffff; the bit of the first block goes down to the lowest place.
            "cmp {equal:e}, 0xffff",
            "rcr {blocks}, 1",
            "add {copy}, 64",
            "add {live}, 64",
            "dec {left:e}",
            "jnz 2b",
            copy = inout(reg) copy.as_ptr() => _, live = inout(reg) from => _,
            left = inout(reg) 64 => _, equal = out(reg) _, blocks = inout(reg) blocks,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
            options(nostack, readonly)
        );
    }
    blocks
}

/// # Safety
///
/// `physical` must be a multiple of 8 in the window.
#[inline]
unsafe fn word(physical: u64) -> u64 {
    // SAFETY: the kernel maps it read-only until the task ends. Linux may write concurrently, so it is read once.
    unsafe { ((TASK_WINDOW_BASE + physical) as *const u64).read_volatile() }
}

/// Ranges of RAM.
struct Ram {
    ranges: [Range; MAX_RANGES],
    count: usize,
    /// The range that the last answer was found in: usually it has the next one, too.
    last: Cell<usize>,
}

impl Ram {
    /// The parts of the ranges that a task's window covers.
    fn new(window: &Window) -> Self {
        let count = window.ram.len().min(usize::try_from(window.count).unwrap_or(0));
        let mut ram = Self { ranges: [Range::default(); MAX_RANGES], count: 0, last: Cell::new(0) };
        for range in &window.ram[..count] {
            let bytes = range.bytes.min(TASK_WINDOW_BYTES.saturating_sub(range.base));
            if bytes != 0 {
                ram.ranges[ram.count] = Range { base: range.base, bytes };
                ram.count += 1;
            }
        }
        ram
    }

    fn as_slice(&self) -> &[Range] {
        &self.ranges[..self.count]
    }

    #[inline]
    fn contains(&self, physical: u64, bytes: u64) -> bool {
        let has = |range: &Range| {
            let inside = physical.wrapping_sub(range.base);
            inside < range.bytes && bytes <= range.bytes - inside
        };
        if self.ranges.get(self.last.get()).is_some_and(has) {
            return true;
        }
        let found = self.as_slice().iter().position(has);
        found.inspect(|at| self.last.set(*at)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_differing_bit_of_a_page_is_seen() {
        #[repr(C, align(16))]
        struct Page([AtomicU64; 512]);
        let word = |n: usize| (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let live = Page(core::array::from_fn(|n| AtomicU64::new(word(n))));
        // The copy may begin at any word.
        for skip in 0..2 {
            let mut copies: [u64; 513] = core::array::from_fn(|n| word(n.wrapping_sub(skip)));
            let copy: &mut [u64; 512] = copies[skip..].first_chunk_mut().expect("512 words");
            assert!(!differs(&live.0, copy) && differing_blocks(&live.0, copy) == 0);
            for (word, bit) in (0..512).flat_map(|word| [0, 7, 31, 32, 63].map(|bit| (word, bit))) {
                copy[word] ^= 1 << bit;
                let is_seen =
                    differs(&live.0, copy) && differing_blocks(&live.0, copy) == 1 << (word / 8);
                assert!(is_seen, "word {word} bit {bit}");
                copy[word] ^= 1 << bit;
            }
            (copy[0], copy[511], copy[80]) = (1, 0, 0);
            assert_eq!(differing_blocks(&live.0, copy), 1 << 63 | 1 << 10 | 1);
        }
    }

    #[test]
    fn only_ram_within_the_window_is_readable() {
        let mut window = Window { count: 3, ram: [Range::default(); MAX_RANGES] };
        window.ram[0] = Range { base: 0x1000, bytes: 0x2000 };
        window.ram[1] = Range { base: TASK_WINDOW_BYTES - 0x1000, bytes: 0x5000 };
        window.ram[2] = Range { base: TASK_WINDOW_BYTES + 0x10_0000, bytes: 0x1000 };
        let ram = Ram::new(&window);
        for (physical, bytes, good) in [
            (0x1000, 0x2000, true),
            (0x1000, 0x2001, false),
            (0xff8, 16, false),
            (0x2ff8, 8, true),
            (0x2ff9, 8, false),
            (0x3000, 0, false),
            (TASK_WINDOW_BYTES - 8, 8, true),
            (TASK_WINDOW_BYTES - 8, 9, false),
            (TASK_WINDOW_BYTES, 8, false),
            (TASK_WINDOW_BYTES + 0x10_0000, 8, false),
            (0x1000, u64::MAX, false),
            (u64::MAX, 8, false),
        ] {
            assert_eq!(ram.contains(physical, bytes), good, "{physical:#x} {bytes:#x}");
        }
        window.count = u64::MAX;
        assert_eq!(Ram::new(&window).as_slice().len(), 2);
        let nothing = LinuxMemory { ram: Ram::new(&Window { count: 0, ..window }) };
        assert!(nothing.word(0x1000).is_none() && !nothing.read(0x1000, &mut [0; 4]));
    }
}
