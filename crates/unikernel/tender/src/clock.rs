//! The time-stamp counter as a clock: one clock per group, the same in all its guests and in the tender.

pub use kyozon_join::clock::Clock;
use std::arch::x86_64::{__cpuid, _rdtsc};
use std::sync::LazyLock;
use std::time::Duration;

/// Minimum duration of a rate measurement, in multiples of the time that one reading of counter and clock takes. The
/// error of the rate is then less than 1/10,000, and mostly some millionths.
const MIN_READINGS: u64 = 10_000;
/// Maximum duration of a rate measurement, in case a reading takes long.
const MAX_DURATION: Duration = Duration::from_millis(20);
/// Pause between two readings.
const PAUSE: Duration = Duration::from_micros(100);

/// CLOCK_MONOTONIC in nanoseconds.
fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // Not through rustix, which would search for the vDSO a second time at each start.
    // SAFETY: the call writes to a local structure; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn counter() -> u64 {
    // SAFETY: the instruction reads a counter that Linux leaves readable in user mode.
    unsafe { _rdtsc() }
}

/// The counter and the clock at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The counter, in ticks.
    tsc: u64,
    /// The clock, in nanoseconds.
    ns: u64,
    /// Ticks that the reading took.
    took: u64,
}

impl Moment {
    /// Takes several readings and returns the quickest.
    pub fn now() -> Self {
        let read = || {
            let before = counter();
            let ns = monotonic();
            let took = counter().wrapping_sub(before);
            Self { tsc: before.wrapping_add(took / 2), ns, took }
        };
        let first = read();
        (1..8)
            .map(|_| read())
            .fold(first, |best, next| if next.took < best.took { next } else { best })
    }
}

/// Whether the counter never stops and keeps its rate (AMD APM volume 3, function 8000_0007; Intel SDM volume 3,
/// 18.17.1).
/// Every processor with 64-bit mode has this leaf.
pub(crate) fn steady() -> bool {
    // Cached, because CPUID causes an exit if the host is itself a guest.
    static STEADY: LazyLock<bool> = LazyLock::new(|| __cpuid(0x8000_0007).edx & 1 << 8 != 0);
    *STEADY
}

/// The counter's rate in kHz, measured since `began`.
fn rate(began: Moment) -> u64 {
    loop {
        let now = Moment::now();
        let (ticks, ns) = (now.tsc.wrapping_sub(began.tsc), (now.ns - began.ns).max(1));
        let min_ticks = (began.took + now.took) / 2 * MIN_READINGS;
        if ticks >= min_ticks || Duration::from_nanos(ns) >= MAX_DURATION {
            return (u128::from(ticks) * 1_000_000 / u128::from(ns)) as u64;
        }
        std::thread::sleep(PAUSE);
    }
}

/// A clock that starts at `began`. `khz` is the counter's rate if KVM knows it; otherwise the rate is measured.
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
    fn measured_rates_agree() {
        let rates = [(); 5].map(|()| rate(Moment::now()));
        let (min, max) = (rates.iter().min().unwrap(), rates.iter().max().unwrap());
        assert!(max - min <= min / 1000, "{rates:?}");
    }

    #[test]
    fn an_unknown_rate_is_measured() {
        let (measured, before) = (since(Moment::now(), None), monotonic());
        let now = measured.now();
        let after = monotonic();
        // The scheduler may interrupt the test between any two lines.
        let slack = 5_000_000;
        assert!(now + slack > before && now < after + slack, "{before} {now} {after}");
        assert_eq!(measured.until(0), Duration::ZERO);
    }
}
