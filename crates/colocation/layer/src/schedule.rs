//! The time of the next tick: one-shot, absolute, with a period of 32 fractional bits.
//!
//! A comparator that the counter has passed is silent until the counter wraps, so the counter is read after each write,
//! and the tick moved on if it was passed. The module has the same rules for the same timer.

/// A counter of 32 bits, and comparators that interrupt when it reaches them.
pub trait Counter {
    /// Now.
    fn now(&self) -> u32;
    /// The next tick's comparator.
    fn set_tick(&mut self, at: u32);
    /// The time-stamp counter.
    fn tsc(&self) -> u64;
}

/// Femtoseconds: the counter may pass a nearer comparator before it is set.
const MARGIN_FS: u64 = 2_000_000_000;
const FS_PER_SECOND: u64 = 1_000_000_000_000_000;
/// Milliseconds from the start to the first tick: the time for which firmware may hold the CPU in between.
const LEAD_MS: u64 = 5;

/// The clocks' rates.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Femtoseconds of one count.
    pub period_fs: u32,
    /// Time-stamp counter ticks in a millisecond.
    pub tsc_khz: u64,
}

impl Rates {
    /// Time-stamp counter ticks in a count, 32 fractional bits.
    pub fn tsc_per_count(&self) -> u64 {
        let fs_khz = u128::from(self.tsc_khz) * u128::from(self.period_fs);
        ((fs_khz << 32) / 1_000_000_000_000) as u64
    }

    /// Counts in a tick of the time-stamp counter, 32 fractional bits.
    pub fn count_per_tsc(&self) -> u64 {
        let fs_khz = u128::from(self.tsc_khz) * u128::from(self.period_fs);
        ((1_000_000_000_000 << 32) / fs_khz) as u64
    }

    /// Counts in `us` microseconds.
    pub fn counts(&self, us: u64) -> u64 {
        us * 1_000_000_000 / u64::from(self.period_fs)
    }
}

/// `value` times a rate with 32 fractional bits.
pub fn scale(value: u32, rate: u64) -> u64 {
    ((u128::from(value) * u128::from(rate)) >> 32) as u64
}

/// Maximum counts of a rest, well below half the counter.
const REST_MAX: u64 = 1 << 28;

/// The same for any `value`, limited to the maximum of a rest.
pub fn scale_long(value: u64, rate: u64) -> u32 {
    ((u128::from(value) * u128::from(rate)) >> 32).min(u128::from(REST_MAX)) as u32
}

/// The tick's schedule, in counts.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    period: u64,
    next: u64,
    margin: u32,
    furthest: u32,
    /// Minimum counts from now to the next tick.
    pub rest: u32,
}

/// A tick that was armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Armed {
    /// Where the comparator stands.
    pub at: u32,
    /// Counts until then, when the time-stamp counter stood at `tsc`.
    pub left: u32,
    /// See `left`.
    pub tsc: u64,
    /// Ticks that were passed and are merged with this one.
    pub passed: u32,
}

impl Schedule {
    /// `hz` ticks a second, the first a few milliseconds after `now`.
    pub fn new(rates: &Rates, hz: u32, now: u32) -> Self {
        let per_second = u128::from(rates.period_fs) * u128::from(hz);
        let period = ((u128::from(FS_PER_SECOND) << 32) / per_second) as u64;
        let lead = rates.counts(LEAD_MS * 1000) as u32;
        Self {
            period,
            next: u64::from(now.wrapping_add(lead)) << 32,
            margin: (MARGIN_FS / u64::from(rates.period_fs)) as u32 + 1,
            furthest: (period >> 32) as u32 + lead + 1,
            rest: 0,
        }
    }

    /// Arms the first tick.
    pub fn first(&mut self, counter: &mut impl Counter) -> Armed {
        self.arm(counter)
    }

    /// Arms the tick after the one that was armed last.
    pub fn next(&mut self, counter: &mut impl Counter) -> Armed {
        self.next = self.next.wrapping_add(self.period);
        self.arm(counter)
    }

    /// Whether the tick that was armed last is due by the counter.
    pub fn is_due(&self, counter: &impl Counter) -> bool {
        let passed = counter.now().wrapping_sub((self.next >> 32) as u32);
        (passed.wrapping_add(self.margin) as i32) >= 0
    }

    fn arm(&mut self, counter: &mut impl Counter) -> Armed {
        let mut passed = 0;
        let least = i64::from(self.margin) + i64::from(self.rest);
        loop {
            let at = (self.next >> 32) as u32;
            counter.set_tick(at);
            let now = counter.now();
            let tsc = counter.tsc();
            let mut left = i64::from(at.wrapping_sub(now) as i32);
            if left > least {
                if left <= least + i64::from(self.furthest) {
                    return Armed { at, left: left as u32, tsc, passed };
                }
                // The machine stood still for half the counter.
                self.next = u64::from(now) << 32;
                left = 0;
            }
            let behind = (least - left) as u64;
            let skip = (behind << 32) / self.period + 1;
            self.next = self.next.wrapping_add(skip.wrapping_mul(self.period));
            passed += skip as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The HPET of QEMU: 100 MHz; a time-stamp counter of 1 GHz.
    const RATES: Rates = Rates { period_fs: 10_000_000, tsc_khz: 1_000_000 };

    struct Fake {
        now: u32,
        tick: u32,
    }

    impl Counter for Fake {
        fn now(&self) -> u32 {
            self.now
        }
        fn set_tick(&mut self, at: u32) {
            self.tick = at;
        }
        fn tsc(&self) -> u64 {
            u64::from(self.now) * 10
        }
    }

    fn started(hz: u32, now: u32) -> (Schedule, Fake) {
        let mut f = Fake { now, tick: 0 };
        let mut s = Schedule::new(&RATES, hz, now);
        let armed = s.first(&mut f);
        assert_eq!((armed.left, armed.passed, armed.at), (500_000, 0, f.tick));
        (s, f)
    }

    #[test]
    fn rates_are_each_others_inverse() {
        assert_eq!(RATES.tsc_per_count(), 10 << 32);
        assert_eq!(RATES.count_per_tsc(), (1 << 32) / 10);
        assert_eq!(RATES.counts(200), 20_000);
        assert_eq!(scale(7, RATES.tsc_per_count()), 70);
    }

    #[test]
    fn ticks_are_absolute_and_lose_no_fraction() {
        // 300 Hz: a period of 333333 1/3 counts; the counter wraps on the way.
        let (mut s, mut f) = started(300, u32::MAX - 600_000);
        let first = f.tick;
        for i in 1..=3000u64 {
            f.now = f.tick.wrapping_add(i as u32 % 700);
            assert_eq!(s.next(&mut f).passed, 0);
            let exact = (i * 100_000_000 / 300) as u32;
            assert!(first.wrapping_add(exact).wrapping_sub(f.tick) <= 1, "tick {i}");
        }
    }

    #[test]
    fn a_rest_puts_the_next_tick_off() {
        let (mut s, mut f) = started(1000, 5);
        let first = f.tick;
        f.now = first + 60_000;
        s.rest = scale_long(600_000, RATES.count_per_tsc());
        assert_eq!(s.rest, 59_999);
        let armed = s.next(&mut f);
        assert_eq!((armed.at, armed.passed), (first + 200_000, 1));
        assert_eq!(scale_long(u64::MAX, u64::MAX), REST_MAX as u32);
    }

    #[test]
    fn ticks_that_cannot_be_met_are_counted() {
        let (mut s, mut f) = started(1000, 5);
        let first = f.tick;
        // Three periods late, and then some: the fourth is the next that can be met.
        f.now = first + 310_000;
        let armed = s.next(&mut f);
        assert_eq!((armed.at, armed.left, armed.passed), (first + 400_000, 90_000, 3));
        // So near that the comparator may be missed.
        f.now = first + 499_900;
        assert_eq!(s.next(&mut f).passed, 1);
        assert!(!s.is_due(&f));
        f.now = f.tick;
        assert!(s.is_due(&f));
    }

    #[test]
    fn a_machine_that_stood_still_goes_on() {
        let (mut s, mut f) = started(1000, 0);
        f.now = f.tick.wrapping_add(1 << 31);
        let armed = s.next(&mut f);
        assert!(armed.left > 200 && armed.left <= 101_000, "{armed:?}");
    }
}
