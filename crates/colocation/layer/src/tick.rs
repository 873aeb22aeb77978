//! Merges ticks.

use kyozon_abi::layer::TickEvent;

/// Merges two events, in any order. The result is the newer one; the older one and the ticks that it missed count as
/// missed.
pub fn merge(a: &TickEvent, b: &TickEvent) -> TickEvent {
    let newer = if a.number > b.number { a } else { b };
    TickEvent { missed: a.missed + b.missed + 1, ..*newer }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(number: u64, missed: u64) -> TickEvent {
        TickEvent { number, missed, scheduled_tsc: number * 100, entered_tsc: number * 100 + 1 }
    }

    #[test]
    fn merging_counts_every_number() {
        // After tick 4: tick 6 missed 5, tick 9 missed 7 and 8.
        for (a, b) in [(tick(6, 1), tick(9, 2)), (tick(9, 2), tick(6, 1))] {
            let both = merge(&a, &b);
            assert_eq!((both.number, both.missed), (9, 4));
            assert_eq!(both.scheduled_tsc, 900);
        }
    }
}
