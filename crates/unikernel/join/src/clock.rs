//! The group's clock, as `abi::unikernel` defines it.

use core::arch::x86_64::_rdtsc;
use rustix::time::{clock_gettime, ClockId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A monotonic clock; its fields are those of [`kyozon_abi::unikernel::GuestBoot`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Ticks in a millisecond.
    pub khz: u64,
    /// The time-stamp counter when the clock showed `ns`.
    pub tsc: u64,
    /// `CLOCK_MONOTONIC` at that moment, in nanoseconds.
    pub ns: u64,
    /// Nanoseconds of a tick, times 2^32.
    pub scale: u64,
    /// The counter can be a clock: it never stops and never changes its rate. If not, the group's clock is
    /// `CLOCK_MONOTONIC`.
    pub steady: bool,
}

impl Clock {
    /// The clock, in nanoseconds.
    pub fn now(&self) -> u64 {
        if !self.steady {
            let now = clock_gettime(ClockId::Monotonic);
            return now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        }
        #[allow(unsafe_code)]
        // SAFETY: reads a counter that Linux lets user mode read.
        let counter = unsafe { _rdtsc() };
        self.at(counter)
    }

    /// The time from now to `deadline`; zero if it has passed.
    pub fn until(&self, deadline: u64) -> Duration {
        Duration::from_nanos(deadline.saturating_sub(self.now()))
    }

    /// The clock at a value of the counter, in nanoseconds.
    fn at(&self, counter: u64) -> u64 {
        let ticks = counter.wrapping_sub(self.tsc);
        self.ns.wrapping_add(((u128::from(ticks) * u128::from(self.scale)) >> 32) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds() {
        let clock = Clock { khz: 2_000_000, tsc: 100, ns: 7, scale: 1 << 31, steady: true };
        assert_eq!((clock.at(100), clock.at(300)), (7, 107));
        // After a year nothing has overflowed.
        assert_eq!(clock.at(100 + 2_000_000_000 * 31_536_000), 7 + 1_000_000_000 * 31_536_000);
        assert!(Clock::default().now() > 0);
    }
}
