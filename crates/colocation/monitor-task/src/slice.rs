//! The length of a slice: the budget without a margin for what happens after the checks were told to end.
//!
//! A check asks for the time between two units of work, so it ends late by up to one unit. How long a unit takes
//! depends on the machine. The margin follows what was measured: it rises at once and falls slowly, so that a monitor
//! that works as designed is not cut off.

/// The margin is at least this part of the budget, for entry and exit, and at most half of the budget.
const MIN_MARGIN: u64 = 40;
/// The part of its excess by which the margin falls with each slice.
const FALL: u64 = 40;

/// The length of the next slice. Times are in time-stamp counter ticks, from the entry into the trip.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    budget: u64,
    margin: u64,
}

impl Slice {
    /// A slice of a trip that may take `budget`.
    pub fn new(budget: u64) -> Self {
        Self { budget, margin: budget / 8 }
    }

    /// Its length.
    pub fn length(&self) -> u64 {
        self.budget - self.margin
    }

    /// A slice of this length ended after `took`. If that is more than two budgets, the machine did something else
    /// meanwhile, which says nothing about the checks.
    pub fn ended(&mut self, took: u64) {
        let late = took.saturating_sub(self.length());
        if late > self.budget {
            return;
        }
        let wanted = (self.budget / MIN_MARGIN + late + late / 4).min(self.budget / 2);
        self.margin = match wanted.checked_sub(self.margin) {
            Some(rise) => self.margin + rise,
            None => self.margin - (self.margin - wanted).div_ceil(FALL),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use kyozon_monitor::random::Random;

    /// A slice whose end finds the checks anywhere in a unit of work that takes `unit`.
    fn run(slice: &mut Slice, unit: u64, random: &mut Random) -> u64 {
        let took = slice.length() + random.below(unit);
        slice.ended(took);
        took
    }

    #[test]
    fn checks_that_end_late_are_hardly_cut_off() {
        for unit in [100, 1700, 4000, 6100, 7900] {
            let (mut slice, mut random) = (Slice::new(20_000), Random::new(unit));
            let cut = (0..2000).filter(|_| run(&mut slice, unit, &mut random) > 20_000).count();
            assert!(cut <= 3, "{unit}: {cut}");
        }
    }

    #[test]
    fn a_margin_that_is_not_needed_is_given_back() {
        let mut slice = Slice::new(20_000);
        slice.ended(24_000);
        assert!(slice.length() < 14_000);
        for _ in 0..600 {
            run(&mut slice, 10, &mut Random::new(1));
        }
        assert!(slice.length() > 18_500, "{slice:?}");
    }

    #[test]
    fn time_of_other_code_does_not_shorten_the_slice() {
        let mut slice = Slice::new(200);
        let before = slice.length();
        slice.ended(10_000);
        assert_eq!(slice.length(), before);
        (0..100).for_each(|late| slice.ended(200 + late));
        assert!(slice.length() >= 100);
    }
}
