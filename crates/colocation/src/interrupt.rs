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
    fn the_counter_may_wrap() {
        let t = Times { now: 5, deadline: u64::MAX - 3, guard: 0, next: 1000, slack: 0 };
        assert_eq!(decide(&t, At::User), Action::CutOff);
    }
}
