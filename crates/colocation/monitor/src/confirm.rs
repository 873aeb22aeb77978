//! Suspects that become findings when several looks in a row saw the same.

use crate::check::Budget;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::owner::OwnerIndex;
use crate::random::Random;
use alloc::vec::Vec;

/// Maximum number of suspects; more at once are left to later looks.
const MAX_SUSPECTS: usize = 512;

/// So many times as many looks in a row confirm a suspect whose value changes: an intruder can change one all the time.
const CHANGING: u32 = 4;

/// A suspect: `key` had another `value` than it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Suspect<K> {
    key: K,
    value: u64,
    looks: u32,
    seen: bool,
    reported: bool,
    /// Looks in a row that saw it, with any value.
    seen_looks: u32,
}

/// The suspects of a check.
#[derive(Clone, Debug)]
pub(crate) struct Confirm<K> {
    /// Looks in a row that confirm a suspect.
    looks: u32,
    /// Confirmed suspects are reported even if they are gone meanwhile.
    keeps: bool,
    /// Looks in a row that confirm a suspect whose value changes.
    changing: u32,
    suspects: Vec<Suspect<K>>,
    /// How many of them, the last ones, are new in this look; what chooses among them if there are more than fit.
    fresh: usize,
    random: Random,
    /// Number of suspects for which there was no room in this look, and in the last one.
    dropping: u64,
    dropped: u64,
}

impl<K: Copy + PartialEq> Confirm<K> {
    /// No suspects; `looks` looks in a row that see the same value confirm one, or [`CHANGING`] times as many that see
    /// any.
    pub fn new(looks: u32) -> Self {
        Self {
            looks,
            keeps: false,
            changing: looks.saturating_mul(CHANGING),
            suspects: Vec::new(),
            fresh: 0,
            random: Random::new(0),
            dropping: 0,
            dropped: 0,
        }
    }

    /// As [`Confirm::new`], for suspects that no later look acquits: once confirmed, they are reported.
    pub fn keeping(looks: u32) -> Self {
        Self { keeps: true, ..Self::new(looks) }
    }

    /// The same, whose choice among more suspects than there is room for begins from `seed`.
    pub fn seeded(self, seed: u64) -> Self {
        Self { random: Random::new(seed), ..self }
    }

    /// Number of suspects for which there was no room in the last look.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Notes what this look sees. [`Confirm::end_look`] must follow.
    pub fn see(&mut self, key: K, value: u64) {
        if let Some(known) = self.suspects.iter_mut().find(|suspect| suspect.key == key) {
            if known.value != value {
                (known.value, known.looks) = (value, 0);
                known.reported &= known.seen_looks >= self.changing;
            }
            known.looks = known.looks.saturating_add(u32::from(!known.seen));
            known.seen_looks = known.seen_looks.saturating_add(u32::from(!known.seen));
            if known.seen_looks >= self.changing {
                known.looks = known.looks.max(self.looks);
            }
            known.seen = true;
            return;
        }
        let (looks, seen_looks) = (1, 1);
        let new = Suspect { key, value, looks, seen: true, reported: false, seen_looks };
        if self.suspects.len() < MAX_SUSPECTS {
            self.suspects.push(new);
            self.fresh += 1;
            return;
        }
        // Who makes new suspects at each look must not keep one that stands from being seen twice: each of the new ones
        // has the same chance to stay, and keeps its place in the next look.
        self.dropping += 1;
        let chosen = self.random.below(self.fresh as u64 + self.dropping) as usize;
        if chosen < self.fresh {
            let place = self.suspects.len() - self.fresh + chosen;
            self.suspects.get_mut(place).into_iter().for_each(|place| *place = new);
        }
    }

    /// Ends a look: what it did not see is no suspect any more.
    pub fn end_look(&mut self) {
        self.dropped = core::mem::take(&mut self.dropping);
        self.end_look_at(|_| true);
    }

    /// The same for a look at those with a key that `is` accepts.
    pub fn end_look_at(&mut self, is: impl Fn(K) -> bool) {
        let (looks, keeps) = (self.looks, self.keeps);
        let is_kept = |s: &Suspect<K>| !is(s.key) || keeps && s.looks >= looks && !s.reported;
        self.suspects.retain(|suspect| suspect.seen || is_kept(suspect));
        self.suspects.iter_mut().for_each(|suspect| suspect.seen = false);
        self.fresh = 0;
    }

    /// The suspects of the last look.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = K> + '_ {
        self.suspects.iter().map(|suspect| suspect.key)
    }

    /// Whether a suspect is confirmed and not reported.
    pub fn is_due(&self) -> bool {
        self.suspects.iter().any(|suspect| suspect.looks >= self.looks && !suspect.reported)
    }

    /// Whether a suspect needs more looks.
    pub fn is_waiting(&self) -> bool {
        self.waiting().next().is_some()
    }

    /// The suspects that need more looks.
    pub fn waiting(&self) -> impl Iterator<Item = K> + '_ {
        self.suspects.iter().filter(|suspect| suspect.looks < self.looks).map(|it| it.key)
    }

    /// Takes the confirmed suspects that were not reported, each with its value.
    pub fn take(&mut self) -> Vec<(K, u64)> {
        let looks = self.looks;
        let due = self.suspects.iter_mut().filter(|s| s.looks >= looks && !s.reported);
        due.map(|suspect| {
            suspect.reported = true;
            (suspect.key, suspect.value)
        })
        .collect()
    }

    /// As [`Confirm::take`], but once `owners`, which the report names, has been read anew. `None` if there is nothing
    /// to report, or if the slice ended before: that counts as a retry.
    pub fn take_with_owners<M: KernelMemory>(
        &mut self,
        owners: &mut Option<OwnerIndex>,
        kernel: &Kernel<'_, M>,
        budget: &mut dyn Budget,
        retries: &mut u64,
    ) -> Option<Vec<(K, u64)>> {
        if !self.is_due() {
            return None;
        }
        if !owners.as_mut().is_none_or(|index| index.refresh(kernel, budget)) {
            *retries += 1;
            return None;
        }
        Some(self.take())
    }

    /// Whether a reported suspect, with a key that `is` accepts, was seen at the last look.
    pub fn stands(&self, is: impl Fn(K) -> bool) -> bool {
        self.suspects.iter().any(|suspect| suspect.reported && is(suspect.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspects_that_are_new_at_each_look_do_not_keep_out_one_that_stands() {
        let mut confirm = Confirm::new(2);
        let found = (1..=100u64).find_map(|look| {
            // The one that stands is seen last.
            let new = (0..2 * MAX_SUSPECTS as u64).map(|number| look << 32 | number);
            new.chain([7]).for_each(|key| confirm.see(key, 0));
            confirm.end_look();
            assert!(confirm.suspects.len() <= MAX_SUSPECTS);
            confirm.take().first().map(|(key, _)| (*key, look))
        });
        let (key, look) = found.expect("the suspect that stands");
        assert_eq!(key, 7);
        // Each two looks, it has half a chance.
        assert!(look < 40, "{look}");
    }

    fn look(confirm: &mut Confirm<u8>, seen: &[(u8, u64)]) -> Vec<(u8, u64)> {
        seen.iter().for_each(|(key, value)| confirm.see(*key, *value));
        confirm.end_look();
        confirm.take()
    }

    #[test]
    fn only_what_stands_unchanged_is_confirmed() {
        let mut confirm = Confirm::new(2);
        assert!(!confirm.is_waiting());
        assert_eq!(look(&mut confirm, &[(1, 5), (2, 6)]), []);
        assert!(confirm.is_waiting());
        assert_eq!(look(&mut confirm, &[(1, 7)]), [], "another value, and one that is gone");
        assert_eq!(look(&mut confirm, &[(1, 7), (2, 6)]), [(1, 7)]);
        assert!(confirm.stands(|key| key == 1) && !confirm.stands(|key| key == 2));
        assert_eq!(look(&mut confirm, &[(1, 7), (2, 6)]), [(2, 6)], "each is reported once");
        assert_eq!(look(&mut confirm, &[(1, 7)]), []);
        assert_eq!(look(&mut confirm, &[(1, 8)]), []);
        assert_eq!(look(&mut confirm, &[(1, 8)]), [(1, 8)], "a new value is a new suspect");
        look(&mut confirm, &[]);
        assert!(!confirm.stands(|_| true));
    }

    #[test]
    fn a_value_that_one_look_sees_twice_counts_once() {
        let mut confirm = Confirm::new(2);
        assert_eq!(look(&mut confirm, &[(1, 5), (1, 5)]), []);
        assert_eq!(look(&mut confirm, &[(1, 5)]), [(1, 5)]);
    }

    #[test]
    fn a_value_that_changes_all_the_time_is_confirmed() {
        let mut confirm = Confirm::new(2);
        for value in 1..8 {
            assert_eq!(look(&mut confirm, &[(1, value)]), []);
        }
        assert_eq!(look(&mut confirm, &[(1, 8)]), [(1, 8)]);
        assert_eq!(look(&mut confirm, &[(1, 9)]), [], "it is reported once");
        assert!(confirm.stands(|key| key == 1));
        look(&mut confirm, &[]);
        assert_eq!(look(&mut confirm, &[(1, 9)]), [], "gone meanwhile");
    }

    #[test]
    fn a_suspect_that_nothing_acquits_is_reported_when_it_is_gone() {
        let mut confirm = Confirm::keeping(1);
        confirm.see(1, 5);
        confirm.end_look();
        confirm.end_look();
        assert_eq!(confirm.take(), [(1, 5)]);
        confirm.end_look();
        assert!(!confirm.stands(|_| true));
        let mut confirm = Confirm::keeping(2);
        assert_eq!(look(&mut confirm, &[(1, 5)]), []);
        assert_eq!(look(&mut confirm, &[]), []);
        assert_eq!(look(&mut confirm, &[(1, 5)]), [], "one look is not two in a row");
    }

    #[test]
    fn the_number_of_suspects_is_bounded() {
        let mut confirm = Confirm::new(1);
        (0..2 * MAX_SUSPECTS as u64).for_each(|value| confirm.see(value, value));
        confirm.end_look();
        assert_eq!(confirm.take().len(), MAX_SUSPECTS);
        assert_eq!(confirm.dropped(), MAX_SUSPECTS as u64);
    }
}
