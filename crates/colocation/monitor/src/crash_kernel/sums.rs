//! Sums of pages: a change that was made without knowledge of the key has another sum.

use crate::memory::{Page, PAGE_WORDS};
use crate::profile::fingerprints::hash;
use alloc::boxed::Box;
use alloc::vec;
use core::sync::atomic::Ordering::Relaxed;

/// Words that end in a sum of 64 bits, by halves, and one more.
const LAST: usize = 5;
/// Pairs of words that are added up together.
const PAIRS: usize = 8;

/// The key of the sums. Linux must know neither it nor the sums.
#[derive(Clone, Debug)]
pub(super) struct Key {
    words: Box<[u64]>,
    last: [u64; LAST],
}

impl Key {
    /// Expands `seed`.
    pub fn new(seed: u64) -> Self {
        let number = |at: usize| hash([seed, 0x6b65_726e_656c], &[at as u64]);
        let mut words = vec![0; PAGE_WORDS].into_boxed_slice();
        words.iter_mut().enumerate().for_each(|(at, word)| *word = number(at));
        Self { words, last: core::array::from_fn(|at| number(PAGE_WORDS + at)) }
    }

    /// The sum of a page. It is NH over words of 64 bits (Black and others, "UMAC", 1999), then Multilinear: with a
    /// random key, two different pages agree less than twice in 2^32. Nine instructions for two words.
    #[inline(never)]
    pub fn sum(&self, page: &Page) -> u32 {
        let mut sum: u128 = 0;
        let keys = self.words.chunks_exact(2 * PAIRS);
        for (words, keys) in page.chunks_exact(2 * PAIRS).zip(keys) {
            for (words, keys) in words.chunks_exact(2).zip(keys.chunks_exact(2)) {
                let [first, second] = [0, 1].map(|at| words[at].load(Relaxed));
                let first = u128::from(first.wrapping_add(keys[0]));
                sum = sum.wrapping_add(first * u128::from(second.wrapping_add(keys[1])));
            }
        }
        let parts = [0, 32, 64, 96].map(|shift| (sum >> shift) as u64 & u64::from(u32::MAX));
        let products = parts.iter().zip(&self.last[1..]).map(|(part, key)| part.wrapping_mul(*key));
        (products.fold(self.last[0], u64::wrapping_add) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;

    fn page(of: impl Fn(usize) -> u64) -> Page {
        core::array::from_fn(|at| AtomicU64::new(of(at)))
    }

    #[test]
    fn each_bit_counts_under_each_key() {
        let [key, other] = [1, 2].map(Key::new);
        let zero = page(|_| 0);
        assert_ne!(key.sum(&zero), other.sum(&zero));
        assert_eq!(key.sum(&zero), Key::new(1).sum(&zero));
        for place in 0..PAGE_WORDS {
            for bit in 0..64 {
                let changed = page(|at| if at == place { 1 << bit } else { 0 });
                assert_ne!(key.sum(&changed), key.sum(&zero), "{place} {bit}");
            }
        }
    }

    #[test]
    fn what_cancels_out_in_weaker_sums_counts() {
        let key = Key::new(3);
        let zero = key.sum(&page(|_| 0));
        // The highest bits of two words, the same number in all, and two words that were exchanged.
        assert_ne!(key.sum(&page(|at| if at < 2 { 1 << 63 } else { 0 })), zero);
        assert_ne!(key.sum(&page(|at| if at % 2 == 0 { 1 << 63 } else { 0 })), zero);
        assert_ne!(key.sum(&page(|_| u64::MAX)), zero);
        let words = |first: usize| move |at: usize| if at / 2 == first { at as u64 } else { 0 };
        assert_ne!(key.sum(&page(words(3))), key.sum(&page(words(4))));
    }
}
