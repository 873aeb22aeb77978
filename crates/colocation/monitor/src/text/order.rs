//! The order in which a pass looks at pages: random, and another one in each pass, so that nobody who knows the last
//! pass can put a page right just before its next look.
//!
//! After the first pass a page moves only within a part of the order. With a free order, two looks at a page could be
//! almost two passes apart; so they are at most 65/64 of a pass apart.

use crate::random::Random;
use alloc::vec::Vec;

/// Parts within which the order changes from pass to pass.
const PARTS: usize = 64;

/// An order of the numbers below a count.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// `None` for the order of the numbers.
    random: Option<Random>,
    /// The numbers; those of this pass that were taken come first.
    numbers: Vec<u32>,
    /// Where the part ends in which numbers change places: the whole order in the first pass.
    end: usize,
}

impl Order {
    /// A random order, which Linux does not know if it does not know `seed`.
    pub fn random(seed: u64) -> Self {
        Self { random: Some(Random::new(seed)), ..Self::default() }
    }

    /// The number at `place` in the order, of those below `count`. Asked for one place after the other: the rest of the
    /// order is not chosen before (Fisher and Yates).
    pub fn take(&mut self, place: usize, count: usize) -> usize {
        let Some(random) = &mut self.random else { return place };
        if self.numbers.len() != count {
            self.numbers = (0..count as u32).collect();
            self.end = count;
        } else if place == 0 {
            self.end = 0;
        }
        if place >= self.end {
            let part = count.div_ceil(PARTS);
            self.end = count.min((place / part + 1) * part);
        }
        let other = place + random.below((self.end - place) as u64) as usize;
        self.numbers.swap(place, other);
        self.numbers[place] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_covers_all_pages_in_another_order() {
        let mut order = Order::random(7);
        let mut pass = || (0..500).map(|place| order.take(place, 500)).collect::<Vec<_>>();
        let (first, second) = (pass(), pass());
        assert_ne!(first, second);
        for (place, page) in second.iter().enumerate() {
            let before = first.iter().position(|other| other == page).unwrap();
            assert!(place.abs_diff(before) < 500 / PARTS + 1, "page {page}");
        }
        for mut pages in [first, second] {
            pages.sort();
            assert_eq!(pages, (0..500).collect::<Vec<_>>());
        }
    }
}
