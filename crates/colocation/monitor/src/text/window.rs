//! A page and a word on either side, in words: what stands there, and what should.

use super::baseline::Baseline;
use crate::kernel::Kernel;
use crate::memory::{KernelMemory, PAGE_BYTES, PAGE_WORDS};
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

/// Bytes on either side: an instruction may lie across the page's edge.
pub(super) const MARGIN: u64 = 8;

/// Two rows of words; places in them are byte offsets from the first.
pub(super) struct Window {
    /// Virtual address of the first byte, a multiple of 8.
    pub start: u64,
    pub live: Vec<u64>,
    pub expected: Vec<u64>,
}

impl Window {
    /// Of page `number`; `None` where it cannot be read. A margin that cannot be is left out.
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

    /// The place of `address`.
    pub fn place(&self, address: u64) -> Option<usize> {
        usize::try_from(address.checked_sub(self.start)?).ok()
    }

    /// How many places there are.
    pub fn len(&self) -> usize {
        8 * self.live.len()
    }

    /// The first place in `places` where another byte stands than should.
    pub fn first_difference(&self, places: Range<usize>) -> Option<usize> {
        let end = places.end.min(self.len());
        let mut word = places.start / 8;
        let mut different = self.word_difference(word)? & u64::MAX << (places.start % 8 * 8);
        if different == 0 {
            let rows = self
                .live
                .get(word + 1..end.div_ceil(8))?
                .iter()
                .zip(self.expected.get(word + 1..)?);
            word += 1 + rows.take_while(|(live, expected)| live == expected).count();
            different = self.word_difference(word)?;
        }
        let place = 8 * word + different.trailing_zeros() as usize / 8;
        (different != 0 && place < end).then_some(place)
    }

    fn word_difference(&self, word: usize) -> Option<u64> {
        Some(self.live.get(word)? ^ self.expected.get(word)?)
    }

    /// Says that what stands in `places` should.
    pub fn accept(&mut self, places: Range<usize>) {
        for place in places {
            if let (Some(&live), Some(expected)) =
                (self.live.get(place / 8), self.expected.get_mut(place / 8))
            {
                let mask = 0xff << (place % 8 * 8);
                *expected = *expected & !mask | live & mask;
            }
        }
    }

    /// Says that `bytes` should stand at `place`.
    pub fn set_expected(&mut self, place: usize, bytes: &[u8]) {
        for (place, byte) in (place..).zip(bytes) {
            if let Some(expected) = self.expected.get_mut(place / 8) {
                let shift = place % 8 * 8;
                *expected = *expected & !(0xff << shift) | u64::from(*byte) << shift;
            }
        }
    }
}

/// Up to 8 bytes of `row` from `place` on.
pub(super) fn bytes<const N: usize>(row: &[u64], place: usize) -> Option<[u8; N]> {
    let low = *row.get(place / 8)?;
    let high = match row.get(place / 8 + 1) {
        Some(&high) => high,
        None if place % 8 + N <= 8 => 0,
        None => return None,
    };
    let both = u128::from(low) | u128::from(high) << 64;
    let both = (both >> (place % 8 * 8)).to_le_bytes();
    both.get(..N)?.try_into().ok()
}

/// The bytes of `row` at `places`, as far as they go.
pub(super) fn part(row: &[u64], places: Range<usize>) -> Vec<u8> {
    places.map_while(|place| bytes::<1>(row, place)).flatten().collect()
}
