//! Time in nanoseconds. The group's clock is the same for all peers. If the time-stamp counter can be a clock, reading
//! it makes no hypercall.

use crate::raw;
use crate::start::{self, own_boot};
use core::sync::atomic::Ordering;
use kyozon_abi::unikernel::*;

/// The time-stamp counter.
#[inline]
pub fn counter() -> u64 {
    // SAFETY: reads a counter that CPL 3 may read.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The group's clock at a value of the counter.
fn at(boot: &GuestBoot, counter: u64) -> u64 {
    let ticks = counter.wrapping_add(boot.tsc_offset).wrapping_sub(boot.clock_tsc);
    boot.clock_ns.wrapping_add(((u128::from(ticks) * u128::from(boot.clock_scale)) >> 32) as u64)
}

/// The group's monotonic clock.
#[inline]
pub fn now() -> u64 {
    let boot = own_boot();
    if boot.features & FEATURE_TSC != 0 {
        return at(boot, counter());
    }
    // SAFETY: the call touches no memory.
    unsafe { raw::hypercall(ASK_CLOCK, &[]) }.unwrap_or(0)
}

/// The group's clock at this guest's first instruction; `None` if the time-stamp counter is no clock.
pub fn first_instruction() -> Option<u64> {
    let boot = own_boot();
    (boot.features & FEATURE_TSC != 0).then(|| at(boot, start::FIRST.load(Ordering::Relaxed)))
}

/// The group's clock at a value of this guest's counter; `None` if the time-stamp counter is no clock.
pub fn at_counter(counter: u64) -> Option<u64> {
    let boot = own_boot();
    (boot.features & FEATURE_TSC != 0).then(|| at(boot, counter))
}

/// Nanoseconds since 1970 by the host's clock, which may jump.
pub fn time_of_day() -> u64 {
    // SAFETY: the call touches no memory.
    unsafe { raw::hypercall(ASK_TIME_OF_DAY, &[]) }.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds() {
        let boot = GuestBoot {
            clock_tsc: 1000,
            clock_ns: 50,
            clock_scale: 1 << 31,
            tsc_offset: 990,
            ..GuestBoot::default()
        };
        assert_eq!((at(&boot, 10), at(&boot, 210)), (50, 150));
        // A guest with a counter ahead of the host's.
        let ahead = GuestBoot { tsc_offset: 0_u64.wrapping_sub(500), ..boot };
        assert_eq!(at(&ahead, 1500 + 2 * 86_400_000_000_000), 50 + 86_400_000_000_000);
    }
}
