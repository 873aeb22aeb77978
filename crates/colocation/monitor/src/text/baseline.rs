//! The copy of text and read-only data that later passes compare with (the baseline).

use crate::kernel::Kernel;
use crate::memory::{KernelMemory, Page, PAGE_BYTES, PAGE_WORDS};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

/// A copied page.
type PageCopy = Box<[u64; PAGE_WORDS]>;

/// The copied pages of text and read-only data, numbered from the first page of text. Unreadable pages have no copy.
#[derive(Debug)]
pub(super) struct Baseline {
    ranges: [Range<u64>; 2],
    pages: Vec<Option<PageCopy>>,
    /// Number of pages with a copy.
    covered: u64,
}

impl Baseline {
    /// An empty baseline for the ranges `text` and `rodata`, which begin and end at page boundaries.
    pub fn new(text: Range<u64>, rodata: Range<u64>) -> Self {
        Self { ranges: [text, rodata], pages: Vec::new(), covered: 0 }
    }

    /// Number of pages in both ranges.
    pub fn page_count(&self) -> usize {
        self.ranges.iter().map(|range| ((range.end - range.start) / PAGE_BYTES) as usize).sum()
    }

    /// Number of pages that were copied or skipped so far.
    pub fn copied(&self) -> usize {
        self.pages.len()
    }

    /// Number of pages with a copy.
    pub fn covered(&self) -> u64 {
        self.covered
    }

    /// Virtual address of page `number`.
    pub fn address(&self, number: usize) -> u64 {
        let [text, rodata] = &self.ranges;
        let behind = text.start + number as u64 * PAGE_BYTES;
        if behind < text.end {
            behind
        } else {
            rodata.start + (behind - text.end)
        }
    }

    /// The number of the page that holds `address`.
    pub fn page_number(&self, address: u64) -> Option<usize> {
        let [text, rodata] = &self.ranges;
        let at = if text.contains(&address) {
            address - text.start
        } else if rodata.contains(&address) {
            address - rodata.start + (text.end - text.start)
        } else {
            return None;
        };
        Some((at / PAGE_BYTES) as usize)
    }

    /// The numbers of the pages that lie in `range` as a whole.
    pub fn pages_within(&self, range: &Range<u64>) -> Range<usize> {
        let start = range.start.next_multiple_of(PAGE_BYTES);
        let pages = range.end.saturating_sub(start) / PAGE_BYTES;
        self.page_number(start).map_or(0..0, |first| first..first + pages as usize)
    }

    pub fn is_text(&self, address: u64) -> bool {
        self.ranges[0].contains(&address)
    }

    /// Copies the next page. It is skipped if it is unreadable or memory is exhausted.
    pub fn copy_next<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>) {
        let address = self.address(self.pages.len());
        let live = kernel.physical(address).and_then(|physical| kernel.memory.page(physical));
        let copy = live.and_then(copy);
        self.covered += u64::from(copy.is_some());
        self.pages.push(copy);
    }

    /// Whether page `number` equals its copy; `None` if either is missing.
    pub fn is_unchanged<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        number: usize,
    ) -> Option<bool> {
        let copy = self.page(number)?;
        let differs = kernel.memory.differs(kernel.physical(self.address(number))?, copy)?;
        Some(!differs)
    }

    /// Fills `into` with the copy from `address` on; `None` if a part has no copy.
    pub fn bytes(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let mut at = address;
        let mut rest = into;
        while !rest.is_empty() {
            let copy = self.page(self.page_number(at)?)?;
            let mut offset = (at % PAGE_BYTES) as usize;
            while offset < PAGE_BYTES as usize && !rest.is_empty() {
                let word = copy[offset / 8].to_le_bytes();
                let from = word.get(offset % 8..)?;
                let (part, behind) = rest.split_at_mut(from.len().min(rest.len()));
                part.copy_from_slice(from.get(..part.len())?);
                offset += part.len();
                at = at.checked_add(part.len() as u64)?;
                rest = behind;
            }
        }
        Some(())
    }

    /// Writes `bytes` into the copy at `address`. Pages without a copy are skipped.
    pub fn correct(&mut self, address: u64, bytes: &[u8]) {
        for (at, byte) in (address..).zip(bytes) {
            let Some(copy) =
                self.page_number(at).and_then(|page| self.pages.get_mut(page)?.as_deref_mut())
            else {
                continue;
            };
            let word = &mut copy[(at % PAGE_BYTES / 8) as usize];
            let shift = at % 8 * 8;
            *word = *word & !(0xff << shift) | u64::from(*byte) << shift;
        }
    }

    /// The copy of page `number`.
    pub fn page(&self, number: usize) -> Option<&[u64; PAGE_WORDS]> {
        self.pages.get(number)?.as_deref()
    }

    /// The copy of the eight bytes at `address`, a multiple of 8.
    pub fn word(&self, address: u64) -> Option<u64> {
        let copy = self.page(self.page_number(address)?)?;
        Some(copy[(address % PAGE_BYTES / 8) as usize])
    }
}

fn copy(live: &Page) -> Option<PageCopy> {
    let mut words = Vec::new();
    words.try_reserve_exact(PAGE_WORDS).ok()?;
    words.extend(live.iter().map(|word| word.load(Relaxed)));
    words.into_boxed_slice().try_into().ok()
}
