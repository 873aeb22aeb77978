//! A page and one word on either side: the live and the expected contents.

use super::baseline::Baseline;
use crate::kernel::Kernel;
use crate::memory::{KernelMemory, PAGE_BYTES, PAGE_WORDS};
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

/// Bytes on either side, for instructions across the page boundary.
pub(super) const MARGIN: u64 = 8;

/// Live and expected words. Offsets are in bytes from the first word.
pub(super) struct Window {
    /// Virtual address of the first byte, a multiple of 8.
    pub start: u64,
    pub live: Vec<u64>,
    pub expected: Vec<u64>,
}

impl Window {
    /// Reads page `number`; `None` if it cannot be read. A margin that cannot be read is left out.
    pub fn read<M: KernelMemory>(
        kernel: &Kernel<'_, M>,
        baseline: &Baseline,
        number: usize,
    ) -> Option<Self> {
        let page = baseline.address(number);
        let copy = baseline.page(number)?;
        let memory = kernel.memory.page(kernel.physical(page)?)?;
        let margin = |address: u64| baseline.word(address).zip(kernel.u64(address));
        let mut live = Vec::with_capacity(PAGE_WORDS + 2);
        let mut expected = Vec::with_capacity(PAGE_WORDS + 2);
        let before = margin(page.wrapping_sub(MARGIN));
        expected.extend(before.map(|(expected, _)| expected));
        live.extend(before.map(|(_, live)| live));
        expected.extend_from_slice(copy);
        live.extend(memory.iter().map(|word| word.load(Relaxed)));
        let behind = margin(page + PAGE_BYTES);
        expected.extend(behind.map(|(expected, _)| expected));
        live.extend(behind.map(|(_, live)| live));
        Some(Self { start: if before.is_some() { page - MARGIN } else { page }, live, expected })
    }

    /// The offset of `address`; `None` below the window.
    pub fn offset(&self, address: u64) -> Option<usize> {
        usize::try_from(address.checked_sub(self.start)?).ok()
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        8 * self.live.len()
    }

    /// The first offset in `offsets` where the live byte differs from the expected one.
    pub fn first_difference(&self, offsets: Range<usize>) -> Option<usize> {
        let end = offsets.end.min(self.len());
        let mut word = offsets.start / 8;
        let mut different = self.word_difference(word)? & u64::MAX << (offsets.start % 8 * 8);
        if different == 0 {
            let rows = self
                .live
                .get(word + 1..end.div_ceil(8))?
                .iter()
                .zip(self.expected.get(word + 1..)?);
            word += 1 + rows.take_while(|(live, expected)| live == expected).count();
            different = self.word_difference(word)?;
        }
        let offset = 8 * word + different.trailing_zeros() as usize / 8;
        (different != 0 && offset < end).then_some(offset)
    }

    fn word_difference(&self, word: usize) -> Option<u64> {
        Some(self.live.get(word)? ^ self.expected.get(word)?)
    }

    /// Makes the live bytes at `offsets` the expected ones.
    pub fn accept(&mut self, offsets: Range<usize>) {
        for offset in offsets {
            if let (Some(&live), Some(expected)) =
                (self.live.get(offset / 8), self.expected.get_mut(offset / 8))
            {
                let mask = 0xff << (offset % 8 * 8);
                *expected = *expected & !mask | live & mask;
            }
        }
    }

    /// Makes `bytes` the expected ones at `offset`.
    pub fn set_expected(&mut self, offset: usize, bytes: &[u8]) {
        set(&mut self.expected, offset, bytes);
    }

    /// Makes `bytes` the live ones at `offset`.
    pub fn set_live(&mut self, offset: usize, bytes: &[u8]) {
        set(&mut self.live, offset, bytes);
    }
}

fn set(row: &mut [u64], offset: usize, bytes: &[u8]) {
    for (offset, byte) in (offset..).zip(bytes) {
        if let Some(word) = row.get_mut(offset / 8) {
            let shift = offset % 8 * 8;
            *word = *word & !(0xff << shift) | u64::from(*byte) << shift;
        }
    }
}

/// `N` bytes of `row` at `offset`; at most 8.
pub(super) fn bytes<const N: usize>(row: &[u64], offset: usize) -> Option<[u8; N]> {
    let low = *row.get(offset / 8)?;
    let high = match row.get(offset / 8 + 1) {
        Some(&high) => high,
        None if offset % 8 + N <= 8 => 0,
        None => return None,
    };
    let both = u128::from(low) | u128::from(high) << 64;
    let both = (both >> (offset % 8 * 8)).to_le_bytes();
    both.get(..N)?.try_into().ok()
}

/// The bytes of `row` at `offsets`, as far as `row` extends.
pub(super) fn part(row: &[u64], offsets: Range<usize>) -> Vec<u8> {
    offsets.map_while(|offset| bytes::<1>(row, offset)).flatten().collect()
}
