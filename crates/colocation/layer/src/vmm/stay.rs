//! How long the cokernel's guest may stay before it is ended from outside.
//!
//! A layer that works ends every trip by itself: at the NMI that says that the budget is spent. The limit is for one
//! that does not any more. That it has passed shows nothing by itself: the whole machine may have stood still
//! (firmware, or whoever emulates it), and the first NMI after that is the layer's first chance. So the guest is given
//! one NMI more, and the limit anew from then on; what has not left by the end of that is ended. A guest that cannot
//! take it, since it never comes to the end of the one before, has the limit from the moment at which it was wanted.

/// One trip's stay, in ticks of the time-stamp counter.
#[derive(Clone, Copy, Debug)]
pub struct Stay {
    limit: u64,
    end: u64,
    chance: Chance,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chance {
    /// It has the limit from its begin.
    Unneeded,
    /// It is to be given the last NMI.
    Wanted,
    /// It was.
    Given,
}

impl Stay {
    /// A trip that begins at `now`.
    pub const fn new(now: u64, limit: u64) -> Self {
        Self { limit, end: now.wrapping_add(limit), chance: Chance::Unneeded }
    }

    /// An NMI has come: whether the guest is given it. If not, it is ended.
    pub fn on_nmi(&mut self, now: u64) -> bool {
        if (now.wrapping_sub(self.end) as i64) < 0 {
            return true;
        }
        if self.chance != Chance::Unneeded {
            return false;
        }
        self.chance = Chance::Wanted;
        self.end = now.wrapping_add(self.limit);
        true
    }

    /// The guest takes an NMI at the next entry.
    pub fn on_given(&mut self, now: u64) {
        if self.chance == Chance::Wanted {
            self.chance = Chance::Given;
            self.end = now.wrapping_add(self.limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 200;
    /// The NMI that looks whether the limit has passed comes so much later.
    const WATCH: u64 = LIMIT + 1;

    #[test]
    fn within_the_limit_every_nmi_is_given() {
        let mut stay = Stay::new(1000, LIMIT);
        for now in 1000..1000 + LIMIT {
            assert!(stay.on_nmi(now));
            stay.on_given(now);
        }
    }

    #[test]
    fn after_the_machine_stood_still_the_layer_has_its_nmi_and_the_limit_anew() {
        let mut stay = Stay::new(0, LIMIT);
        assert!(stay.on_nmi(5000));
        // It stood still once more before the entry.
        stay.on_given(9000);
        assert!(stay.on_nmi(9000 + LIMIT - 1));
        stay.on_given(9000 + LIMIT - 1);
        assert!(!stay.on_nmi(9000 + LIMIT));
    }

    #[test]
    fn an_nmi_before_the_limit_is_not_the_last_one() {
        let mut stay = Stay::new(0, LIMIT);
        assert!(stay.on_nmi(10));
        stay.on_given(10);
        assert!(stay.on_nmi(5000));
        stay.on_given(5000);
        assert!(stay.on_nmi(5001));
    }

    #[test]
    fn who_ignores_it_is_ended_after_two_limits() {
        let mut stay = Stay::new(0, LIMIT);
        let mut now = 1;
        while stay.on_nmi(now) {
            stay.on_given(now);
            now += WATCH;
        }
        assert_eq!(now, 1 + 2 * WATCH);
    }

    #[test]
    fn who_cannot_take_it_is_ended_after_two_limits() {
        let mut stay = Stay::new(0, LIMIT);
        assert!(stay.on_nmi(1));
        // In the handler of this one it stays for ever: no other one is given.
        stay.on_given(1);
        let mut now = 1 + WATCH;
        while stay.on_nmi(now) {
            now += WATCH;
        }
        assert_eq!(now, 1 + 2 * WATCH);
    }

    #[test]
    fn nmis_without_a_pause_do_not_make_it_longer() {
        let mut stay = Stay::new(0, LIMIT);
        let end = (0..).find(|now| {
            let good = stay.on_nmi(*now);
            stay.on_given(*now);
            !good
        });
        assert_eq!(end, Some(2 * LIMIT));
    }

    #[test]
    fn the_counter_may_wrap() {
        let mut stay = Stay::new(u64::MAX - 10, LIMIT);
        assert!(stay.on_nmi(u64::MAX));
        assert!(stay.on_nmi(LIMIT - 12));
        assert!(stay.on_nmi(LIMIT - 11));
        assert!(stay.on_nmi(2 * LIMIT - 12));
        assert!(!stay.on_nmi(2 * LIMIT - 11));
    }
}
