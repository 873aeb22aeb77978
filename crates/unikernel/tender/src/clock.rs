//! The time-stamp counter as a clock: one for a group, the same in each of its guests and in the tender.

pub use kyozon_join::clock::Clock;
use std::arch::x86_64::{__cpuid, _rdtsc};
use std::sync::LazyLock;
use std::time::Duration;

/// If the counter's rate is unknown, it is compared with the clock until that has taken this many times what a reading
/// of both takes: then the rate is off by less than a ten-thousandth, and mostly by some millionths.
const COMPARE: u64 = 10_000;
/// And for so long at most, where a reading takes long.
const LONGEST: Duration = Duration::from_millis(20);
const NAP: Duration = Duration::from_micros(100);

fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // Not by rustix, which would look for the vDSO a second time at every start.
    // SAFETY: the structure is this function's; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn counter() -> u64 {
    // SAFETY: reads a counter, which Linux leaves to user mode.
    unsafe { _rdtsc() }
}

/// The counter and the clock at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    tsc: u64,
    ns: u64,
    /// Ticks between which the clock was read.
    took: u64,
}

impl Moment {
    /// Of several readings, the one in which least time passed.
    pub fn now() -> Self {
        let one = || {
            let before = counter();
            let ns = monotonic();
            let took = counter().wrapping_sub(before);
            Self { tsc: before.wrapping_add(took / 2), ns, took }
        };
        let first = one();
        (1..8)
            .map(|_| one())
            .fold(first, |best, next| if next.took < best.took { next } else { best })
    }
}

/// The counter neither stops nor changes its rate (AMD APM volume 3, function 8000_0007; Intel SDM volume 3, 18.17.1).
/// Every processor with 64-bit mode has this leaf.
pub(crate) fn steady() -> bool {
    // To ask the processor exits where the host is itself a guest.
    static STEADY: LazyLock<bool> = LazyLock::new(|| __cpuid(0x8000_0007).edx & 1 << 8 != 0);
    *STEADY
}

/// Ticks in a millisecond, since a moment.
fn rate(began: Moment) -> u64 {
    loop {
        let now = Moment::now();
        let (ticks, ns) = (now.tsc.wrapping_sub(began.tsc), (now.ns - began.ns).max(1));
        let enough = (began.took + now.took) / 2 * COMPARE;
        if ticks >= enough || Duration::from_nanos(ns) >= LONGEST {
            return (u128::from(ticks) * 1_000_000 / u128::from(ns)) as u64;
        }
        std::thread::sleep(NAP);
    }
}

/// A clock that began at a moment. `khz` is the counter's rate where it is known, as KVM knows it.
pub fn since(began: Moment, khz: Option<u64>) -> Clock {
    let khz = khz.filter(|khz| *khz != 0).unwrap_or_else(|| rate(began));
    let khz = khz.max(1);
    let scale = ((1_000_000_u128 << 32) / u128::from(khz)) as u64;
    Clock { khz, tsc: began.tsc, ns: began.ns, scale, steady: steady() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_the_same_each_time() {
        let rates = [(); 5].map(|()| rate(Moment::now()));
        let (least, most) = (rates.iter().min().unwrap(), rates.iter().max().unwrap());
        assert!(most - least <= least / 1000, "{rates:?}");
    }

    #[test]
    fn an_unknown_rate_is_measured() {
        let (measured, before) = (since(Moment::now(), None), monotonic());
        let now = measured.now();
        let after = monotonic();
        // The machine may have been elsewhere between any two lines.
        let slack = 5_000_000;
        assert!(now + slack > before && now < after + slack, "{before} {now} {after}");
        assert_eq!(measured.until(0), Duration::ZERO);
    }
}
