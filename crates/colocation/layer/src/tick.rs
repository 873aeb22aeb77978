//! Ticks that fall together.

use kyozon_abi::layer::TickEvent;

/// One event for two, in whichever order they were noticed: the newer one, which says that it missed the older one
/// and what that one missed.
pub fn together(a: &TickEvent, b: &TickEvent) -> TickEvent {
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
    fn no_number_is_lost_in_either_order() {
        // After tick 4: tick 6 missed 5, tick 9 missed 7 and 8.
        for (a, b) in [(tick(6, 1), tick(9, 2)), (tick(9, 2), tick(6, 1))] {
            let both = together(&a, &b);
            assert_eq!((both.number, both.missed), (9, 4));
            assert_eq!(both.scheduled_tsc, 900);
        }
    }
}
