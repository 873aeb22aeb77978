//! What to do with a non-maskable interrupt that comes while the cokernel runs.

/// Where the CPU was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// In user mode.
    User,
    /// In the cokernel's own code.
    Cokernel,
    /// In the layer's or the trampoline's code, which is short and on its way out.
    Layer,
}

/// The times that matter, in ticks of the time-stamp counter.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Now.
    pub now: u64,
    /// When the budget is spent.
    pub deadline: u64,
    /// When the guard was to interrupt.
    pub guard: u64,
    /// When the next tick is due.
    pub next: u64,
    /// By how much the timer's clock and this one may disagree.
    pub slack: u64,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The budget is spent: give the CPU back, go on at the next tick.
    CutOff,
    /// The budget is spent, but this code must come to its end first: look again soon.
    LookAgain,
    /// A tick is due: deliver it to user mode now.
    Deliver,
    /// A tick is due: keep it for the cokernel's next `idle`.
    Keep,
    /// The guard came early: arm it anew.
    Rearm,
    /// Not ours: Linux must see it.
    Foreign,
}

fn reached(now: u64, at: u64, slack: u64) -> bool {
    (now.wrapping_add(slack).wrapping_sub(at) as i64) >= 0
}

/// Decides. The deadline goes before the tick: a tick that is due then is the next trip's.
pub fn decide(t: &Times, at: At) -> Action {
    if reached(t.now, t.deadline, t.slack) {
        match at {
            At::Layer => Action::LookAgain,
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

/// When the guard has to interrupt next.
pub fn guard_at(t: &Times) -> u64 {
    if (t.next.wrapping_sub(t.deadline) as i64) < 0 {
        t.next
    } else {
        t.deadline
    }
}

/// How often the layer's own code is given more time before it counts as stuck.
const MOST_LOOKS: u32 = 12;

/// The looks at the layer's own code in one trip.
#[derive(Debug, Default)]
pub struct Looks {
    trip: u64,
    count: u32,
    due: u64,
}

impl Looks {
    /// None so far.
    pub const fn new() -> Self {
        Self { trip: 0, count: 0, due: 0 }
    }

    /// When to look again in the trip of this number, whose budget is spent; `None`: that code is stuck. The first time
    /// it gets `first` more, then twice as much each time, so that the looks cannot take all the time. An interrupt
    /// that comes before a look is due is none: the code that was interrupted may have armed the guard for an earlier
    /// moment.
    pub fn next(&mut self, trip: u64, t: &Times, first: u64) -> Option<u64> {
        if self.trip != trip {
            *self = Self { trip, count: 0, due: t.now };
        }
        if reached(t.now, self.due, t.slack) {
            if self.count == MOST_LOOKS {
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
            (1990, CutOff, CutOff, LookAgain),
            (5000, CutOff, CutOff, LookAgain),
        ] {
            assert_eq!(decide(&times(now), At::User), user, "{now}");
            assert_eq!(decide(&times(now), At::Cokernel), cokernel, "{now}");
            assert_eq!(decide(&times(now), At::Layer), layer, "{now}");
        }
    }

    #[test]
    fn guard_is_the_nearer_of_tick_and_deadline() {
        assert_eq!(guard_at(&times(0)), 1000);
        let short = Times { deadline: 300, ..times(0) };
        assert_eq!(guard_at(&short), 300);
    }

    #[test]
    fn the_layer_is_stuck_after_twelve_looks_each_in_its_time() {
        let mut looks = Looks::new();
        let mut now = 0;
        for count in 0..12 {
            let due = looks.next(7, &times(now), 100).unwrap();
            assert_eq!(due, now + (100 << count));
            now = due;
        }
        assert_eq!(looks.next(7, &times(now), 100), None);
        assert_eq!(looks.next(8, &times(now), 100), Some(now + 100));
    }

    #[test]
    fn an_interrupt_before_a_look_is_due_is_no_look() {
        let mut looks = Looks::new();
        let due = looks.next(7, &times(1000), 100);
        for now in 1000..1090 {
            assert_eq!(looks.next(7, &times(now), 100), due);
        }
        assert_eq!(looks.next(7, &times(1090), 100), Some(1290));
    }

    #[test]
    fn the_counter_may_wrap() {
        let t = Times { now: 5, deadline: u64::MAX - 3, guard: 0, next: 1000, slack: 0 };
        assert_eq!(decide(&t, At::User), Action::CutOff);
    }
}
