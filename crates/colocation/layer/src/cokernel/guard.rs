//! The clock, and the timer that guards the budget.

use super::state::{entry, entry_pointer, trip, us_to_tsc};
use crate::arch::x86_64 as arch;
use crate::interrupt::Times;

/// The guard is armed at least this many microseconds ahead: the counter may pass a nearer comparator before it is set.
const MIN_AHEAD_US: u64 = 2;
/// Attempts to arm the guard, each twice as far ahead as the one before.
const MAX_TRIES: u32 = 10;

/// The times that the decision about an interrupt needs.
pub(crate) fn times() -> Times {
    Times {
        now: arch::tsc(),
        deadline: trip!(deadline_tsc),
        guard: trip!(guard_tsc),
        next: trip!(next_tsc),
        slack: trip!(slack_tsc),
    }
}

/// Arms the guard for time-stamp counter `tsc`, or for the earliest possible time if that has passed.
pub(crate) fn arm_guard(tsc: u64) {
    let e = entry();
    trip!(guard_tsc = tsc);
    if e.guard == 0 {
        return;
    }
    let mut ahead = tsc.saturating_sub(arch::tsc()).max(us_to_tsc(MIN_AHEAD_US));
    for _ in 0..MAX_TRIES {
        let counts = ((u128::from(ahead) * u128::from(e.guard_per_tsc)) >> 32) as u32;
        // SAFETY: the timer's registers; the comparator belongs to the layer while the trip lasts.
        let left = unsafe {
            let counter = (e.guard + u64::from(e.guard_counter)) as *const u32;
            let comparator = (e.guard + u64::from(e.guard_comparator)) as *mut u32;
            let then = counter.read_volatile().wrapping_add(counts);
            comparator.write_volatile(then);
            then.wrapping_sub(counter.read_volatile())
        };
        // A comparator that the counter has passed meanwhile is silent until it wraps: firmware held the CPU.
        if (1..=counts).contains(&left) {
            return;
        }
        ahead *= 2;
    }
}

/// Acknowledges the real-time clock if it is the tick's source. Returns whether it had interrupted.
///
/// The module holds Linux's lock of these ports as long as the trip lasts, or sets `acknowledge` to 0.
pub(crate) fn acknowledge() -> bool {
    const INDEX: u16 = 0x70;
    const DATA: u16 = 0x71;
    const REGISTER_C: u8 = 0x0c;
    const PERIODIC: u8 = 1 << 6;
    // SAFETY: the module's page, which it writes only between trips; and ports that belong to the layer for this trip.
    unsafe {
        if (&raw const (*entry_pointer()).acknowledge).read_volatile() == 0 {
            return false;
        }
        arch::out8(INDEX, REGISTER_C);
        arch::in8(DATA) & PERIODIC != 0
    }
}
