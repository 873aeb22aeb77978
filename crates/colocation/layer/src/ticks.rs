//! The tick without Linux's module: begins trips, ends them, and arms the timer in between.

use crate::arch::x86_64 as arch;
use crate::hpet::Hpet;
use crate::schedule::{scale, scale_long, Armed, Rates, Schedule};
use kyozon_abi::layer::{Trip, SLACK_DIVISOR, SLACK_US, TRIP_CUT_OFF, TRIP_IDLE};

/// The timer, and its counts. Between trips [`Trip::next_tsc`] is the next tick's time.
pub struct Ticks {
    /// The timer.
    pub timer: Hpet,
    schedule: Schedule,
    tsc_khz: u64,
    tsc_per_count: u64,
    count_per_tsc: u64,
    budget_tsc: u64,
    watch_tsc: u64,
    watch: u32,
    /// [`Trip::slack_tsc`].
    pub slack_tsc: u64,
    passed: u64,
    /// Ticks that were delivered.
    pub ticks: u64,
    /// Ticks that were merged with another.
    pub missed: u64,
    /// Times that the cokernel was cut off.
    pub overruns: u64,
}

impl Ticks {
    /// Sets the timer up, silent; [`Ticks::start`] is next.
    pub fn new(mut timer: Hpet, rates: &Rates, hz: u32, budget_us: u32, trip: &mut Trip) -> Self {
        use crate::schedule::Counter;
        let period_tsc = rates.tsc_khz * 1000 / u64::from(hz);
        let budget_tsc = u64::from(budget_us) * rates.tsc_khz / 1000;
        let watch_us = u64::from(budget_us).min(1_000_000 / u64::from(hz));
        timer.set_up();
        let schedule = Schedule::new(rates, hz, timer.now());
        trip.period_tsc = period_tsc;
        trip.slack_tsc = SLACK_US * rates.tsc_khz / 1000 + period_tsc / SLACK_DIVISOR;
        Self {
            timer,
            schedule,
            tsc_khz: rates.tsc_khz,
            tsc_per_count: rates.tsc_per_count(),
            count_per_tsc: rates.count_per_tsc(),
            budget_tsc,
            watch_tsc: budget_tsc.min(period_tsc),
            watch: rates.counts(watch_us) as u32,
            slack_tsc: trip.slack_tsc,
            passed: 0,
            ticks: 0,
            missed: 0,
            overruns: 0,
        }
    }

    /// Continues the counts of `before`, which had no tick for `pause_tsc`, before [`Ticks::start`].
    #[cold]
    pub fn follow(&mut self, before: &Self, trip: &mut Trip, pause_tsc: u64) {
        let missed = pause_tsc / trip.period_tsc.max(1);
        trip.event.number += missed;
        (self.ticks, self.overruns) = (before.ticks, before.overruns);
        self.missed = before.missed + missed;
    }

    /// Arms the first tick and switches interrupts on.
    pub fn start(&mut self, trip: &mut Trip) -> Armed {
        let armed = self.arm(Schedule::first, trip);
        self.timer.enable();
        armed
    }

    fn arm(&mut self, which: fn(&mut Schedule, &mut Hpet) -> Armed, trip: &mut Trip) -> Armed {
        let armed = which(&mut self.schedule, &mut self.timer);
        trip.next_tsc = armed.tsc + scale(armed.left, self.tsc_per_count);
        if self.timer.has_own_guard() {
            self.timer.set_guard(armed.at.wrapping_add(self.watch));
        }
        self.passed = u64::from(armed.passed);
        armed
    }

    /// Whether the next tick is due, by the time-stamp counter or, slowly, by the timer itself.
    pub fn is_due(&self, trip: &Trip, now: u64) -> bool {
        (now.wrapping_add(self.slack_tsc).wrapping_sub(trip.next_tsc) as i64) >= 0
            || self.schedule.is_due(&self.timer)
    }

    /// Begins a trip for the tick that is due.
    pub fn begin(&mut self, trip: &mut Trip, now: u64) {
        let due = trip.next_tsc;
        trip.event.number += 1 + self.passed;
        trip.event.missed = self.passed;
        trip.event.scheduled_tsc = due;
        trip.event.entered_tsc = now;
        trip.deadline_tsc = now + self.budget_tsc;
        trip.guard_tsc = due + self.watch_tsc;
        trip.next_tsc = due + trip.period_tsc;
        trip.result = TRIP_IDLE;
        trip.ticks_inside = 0;
    }

    /// Whether the armed guard does not cover the trip that has begun.
    pub fn needs_guard(&self, trip: &Trip) -> bool {
        let late = trip.event.entered_tsc.wrapping_sub(trip.event.scheduled_tsc) as i64;
        let half = self.watch_tsc / 2;
        !self.timer.has_own_guard()
            || late >= half as i64
            || arch::tsc().wrapping_sub(trip.event.entered_tsc) >= half
    }

    /// Counts a trip that has ended.
    pub fn count(&mut self, trip: &mut Trip) {
        let inside = u64::from(trip.ticks_inside);
        self.ticks += 1 + inside;
        self.missed += trip.event.missed;
        trip.event.number += inside;
        self.overruns += u64::from(trip.result == TRIP_CUT_OFF);
    }

    /// Arms the next tick, after [`Ticks::count`]. A stop of more than half a period is followed by as long a rest.
    #[inline(always)]
    pub fn next(&mut self, trip: &mut Trip, stop_tsc: u64) -> Armed {
        let long = stop_tsc > trip.period_tsc / 2;
        self.schedule.rest = if long { scale_long(stop_tsc, self.count_per_tsc) } else { 0 };
        let armed = self.arm(Schedule::next, trip);
        // The layer delivered some of them during the trip.
        self.passed = self.passed.saturating_sub(u64::from(trip.ticks_inside));
        armed
    }

    /// Time-stamp counter ticks of `counts`.
    pub fn to_tsc(&self, counts: u32) -> u64 {
        scale(counts, self.tsc_per_count)
    }

    /// Whether the guard of the tick that this trip is for may have interrupted before the trip began.
    pub fn guard_may_have_come(&self, trip: &Trip) -> bool {
        let late = trip.event.entered_tsc.wrapping_sub(trip.event.scheduled_tsc);
        (late.wrapping_add(self.slack_tsc).wrapping_sub(self.watch_tsc) as i64) >= 0
    }

    /// Counts of `us` microseconds.
    pub fn counts(&self, us: u64) -> u32 {
        scale_long(us * self.tsc_khz / 1000, self.count_per_tsc)
    }

    /// Counts from a tick to its guard.
    pub fn watch(&self) -> u32 {
        self.watch
    }
}
