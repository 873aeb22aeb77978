//! Decides what to do with a non-maskable interrupt that comes while the cokernel runs.

/// The code that was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// In user mode, or in typed code.
    User,
    /// In the cokernel's own code.
    Cokernel,
    /// In the layer's or the trampoline's code, which is short and on its way out.
    Layer,
}

/// The times for the decision, in ticks of the time-stamp counter.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Now.
    pub now: u64,
    /// When the budget is spent.
    pub deadline: u64,
    /// When the guard is due.
    pub guard: u64,
    /// When the next tick is due.
    pub next: u64,
    /// By how much the timer's clock and this one may disagree: `Trip::slack_tsc`.
    pub slack: u64,
}

/// The result of the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The budget is spent: give the CPU back until the next tick.
    CutOff,
    /// The budget is spent, but this code must finish first: check again soon.
    Recheck,
    /// A tick is due: deliver it to user mode now.
    Deliver,
    /// A tick is due: keep it for the cokernel's next `idle`.
    Keep,
    /// The guard came early: arm it anew.
    Rearm,
    /// Neither the tick's nor the guard's: Linux must see it.
    Foreign,
}

/// Whether the budget is spent, by this clock alone: no interrupt of the timer says so.
pub fn is_spent(t: &Times) -> bool {
    reached(t.now, t.deadline, 0)
}

fn reached(now: u64, at: u64, slack: u64) -> bool {
    (now.wrapping_add(slack).wrapping_sub(at) as i64) >= 0
}

/// Decides about an interrupt at `at`. The deadline comes first: a tick that is due then belongs to the next trip.
pub fn decide(t: &Times, at: At) -> Action {
    if reached(t.now, t.deadline, t.slack) {
        match at {
            At::Layer => Action::Recheck,
            At::User | At::Cokernel => Action::CutOff,
        }
    } else if reached(t.now, t.next, t.slack) {
        match at {
            At::User => Action::Deliver,
            At::Cokernel | At::Layer => Action::Keep,
        }
    } else if reached(t.now, t.guard, t.slack) {
        Action::Rearm
    } else {
        Action::Foreign
    }
}

/// When the guard must interrupt next: at the next tick or at the deadline.
pub fn guard_at(t: &Times) -> u64 {
    if (t.next.wrapping_sub(t.deadline) as i64) < 0 {
        t.next
    } else {
        t.deadline
    }
}

/// Extensions of the layer's own code in one trip before it counts as stuck.
const MAX_EXTENSIONS: u32 = 12;

/// The time that the layer's own code gets after the budget of one trip.
#[derive(Debug, Default)]
pub struct Extensions {
    trip: u64,
    count: u32,
    due: u64,
}

impl Extensions {
    /// None so far.
    pub const fn new() -> Self {
        Self { trip: 0, count: 0, due: 0 }
    }

    /// When to check again in trip number `trip`, whose budget is spent. `None` if the code is stuck.
    ///
    /// The first extension is `first` ticks of the time-stamp counter, each other one twice its predecessor, so that
    /// the checks cannot take all the time. An interrupt that comes before the check is due does not count: the
    /// interrupted code may have armed the guard for an earlier moment.
    pub fn next(&mut self, trip: u64, t: &Times, first: u64) -> Option<u64> {
        if self.trip != trip {
            *self = Self { trip, count: 0, due: t.now };
        }
        if reached(t.now, self.due, t.slack) {
            if self.count == MAX_EXTENSIONS {
                return None;
            }
            self.due = t.now.wrapping_add(first << self.count);
            self.count += 1;
        }
        Some(self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(now: u64) -> Times {
        Times { now, deadline: 2000, guard: 900, next: 1000, slack: 10 }
    }

    #[test]
    fn decisions_follow_the_clock() {
        use Action::*;
        for (now, user, cokernel, layer) in [
            (500, Foreign, Foreign, Foreign),
            (890, Rearm, Rearm, Rearm),
            (989, Rearm, Rearm, Rearm),
            (990, Deliver, Keep, Keep),
            (1989, Deliver, Keep, Keep),
            (1990, CutOff, CutOff, Recheck),
            (5000, CutOff, CutOff, Recheck),
        ] {
            assert_eq!(decide(&times(now), At::User), user, "{now}");
            assert_eq!(decide(&times(now), At::Cokernel), cokernel, "{now}");
            assert_eq!(decide(&times(now), At::Layer), layer, "{now}");
        }
    }

    /// A cokernel that ends its work just before the deadline, and then calls a service, is not cut off.
    #[test]
    fn services_have_the_whole_budget() {
        assert!(!is_spent(&times(1999)));
        assert!(is_spent(&times(2000)) && is_spent(&times(5000)));
    }

    #[test]
    fn guard_is_the_nearer_of_tick_and_deadline() {
        assert_eq!(guard_at(&times(0)), 1000);
        let short = Times { deadline: 300, ..times(0) };
        assert_eq!(guard_at(&short), 300);
    }

    #[test]
    fn layer_is_stuck_after_twelve_extensions() {
        let mut extensions = Extensions::new();
        let mut now = 0;
        for count in 0..12 {
            let due = extensions.next(7, &times(now), 100).unwrap();
            assert_eq!(due, now + (100 << count));
            now = due;
        }
        assert_eq!(extensions.next(7, &times(now), 100), None);
        assert_eq!(extensions.next(8, &times(now), 100), Some(now + 100));
    }

    #[test]
    fn early_interrupts_do_not_count() {
        let mut extensions = Extensions::new();
        let due = extensions.next(7, &times(1000), 100);
        for now in 1000..1090 {
            assert_eq!(extensions.next(7, &times(now), 100), due);
        }
        assert_eq!(extensions.next(7, &times(1090), 100), Some(1290));
    }

    #[test]
    fn counter_may_wrap() {
        let t = Times { now: 5, deadline: u64::MAX - 3, guard: 0, next: 1000, slack: 0 };
        assert_eq!(decide(&t, At::User), Action::CutOff);
    }
}
