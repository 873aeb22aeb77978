//! The time limit of a trip, after which the hypervisor ends the cokernel's guest.
//!
//! A working layer ends every trip by itself, at the NMI that comes when the budget is spent. The limit is for a layer
//! that does not work any more. An expired limit alone proves nothing: firmware or an emulator may have stopped the
//! whole machine, and the first NMI after that is the layer's first chance. So the guest gets one more NMI, and the
//! limit starts again when it takes that NMI. If the guest cannot take it, because it never finishes the NMI before,
//! the limit starts again when the NMI was wanted. A guest that has not left by then is ended.

/// One trip's stay, in ticks of the time-stamp counter.
#[derive(Clone, Copy, Debug)]
pub struct Stay {
    limit: u64,
    end: u64,
    chance: Chance,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chance {
    /// The first limit is running.
    Unneeded,
    /// The guest is to get the last NMI.
    Wanted,
    /// The guest has got it.
    Given,
}

impl Stay {
    /// A trip that begins at `now`.
    pub const fn new(now: u64, limit: u64) -> Self {
        Self { limit, end: now.wrapping_add(limit), chance: Chance::Unneeded }
    }

    /// An NMI has come. Returns whether the guest gets it; if not, the guest is ended.
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
    /// Time to the NMI that checks the limit.
    const WATCH: u64 = LIMIT + 1;

    #[test]
    fn nmis_within_the_limit_are_given() {
        let mut stay = Stay::new(1000, LIMIT);
        for now in 1000..1000 + LIMIT {
            assert!(stay.on_nmi(now));
            stay.on_given(now);
        }
    }

    #[test]
    fn stopped_machine_restarts_the_limit() {
        let mut stay = Stay::new(0, LIMIT);
        assert!(stay.on_nmi(5000));
        // It stood still once more before the entry.
        stay.on_given(9000);
        assert!(stay.on_nmi(9000 + LIMIT - 1));
        stay.on_given(9000 + LIMIT - 1);
        assert!(!stay.on_nmi(9000 + LIMIT));
    }

    #[test]
    fn nmis_before_the_limit_are_not_the_last() {
        let mut stay = Stay::new(0, LIMIT);
        assert!(stay.on_nmi(10));
        stay.on_given(10);
        assert!(stay.on_nmi(5000));
        stay.on_given(5000);
        assert!(stay.on_nmi(5001));
    }

    #[test]
    fn ignored_nmis_end_after_two_limits() {
        let mut stay = Stay::new(0, LIMIT);
        let mut now = 1;
        while stay.on_nmi(now) {
            stay.on_given(now);
            now += WATCH;
        }
        assert_eq!(now, 1 + 2 * WATCH);
    }

    #[test]
    fn blocked_nmis_end_after_two_limits() {
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
    fn nmi_floods_do_not_extend_the_limit() {
        let mut stay = Stay::new(0, LIMIT);
        let end = (0..).find(|now| {
            let good = stay.on_nmi(*now);
            stay.on_given(*now);
            !good
        });
        assert_eq!(end, Some(2 * LIMIT));
    }

    #[test]
    fn counter_may_wrap() {
        let mut stay = Stay::new(u64::MAX - 10, LIMIT);
        assert!(stay.on_nmi(u64::MAX));
        assert!(stay.on_nmi(LIMIT - 12));
        assert!(stay.on_nmi(LIMIT - 11));
        assert!(stay.on_nmi(2 * LIMIT - 12));
        assert!(!stay.on_nmi(2 * LIMIT - 11));
    }
}
