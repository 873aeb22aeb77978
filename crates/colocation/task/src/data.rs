//! Memory that the kernel maps for a task in addition to its image: the loader's data and Linux's memory.

use crate::{linux, Result};
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
