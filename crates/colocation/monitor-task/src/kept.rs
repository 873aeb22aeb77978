//! Open findings in the memory that a restart of the monitor does not change.
//!
//! One slot per finding. The first word is written last, and cleared first: a restart may come between two writes. The
//! content is the monitor's own, but it may be the trace of a failure: whatever it holds, reading ends.

use crate::case::Case;
use alloc::string::String;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Words of a slot, and of its text.
const SLOT: usize = 32;
const TEXT: usize = 26;
/// In the first word of a slot that is in use; the check's index is in the low byte.
const USED: u64 = 0x6669_6e64_696e_6700;

/// The kept memory.
pub struct Kept<'a>(&'a [AtomicU64]);

impl<'a> Kept<'a> {
    /// The findings kept in `words`.
    pub fn new(words: &'a [AtomicU64]) -> Self {
        Self(words)
    }

    fn slots(&self) -> impl Iterator<Item = &'a [AtomicU64]> {
        self.0.chunks_exact(SLOT)
    }

    /// The cases of check number `check` that were kept.
    pub fn cases(&self, check: usize) -> impl Iterator<Item = Case> + use<'a> {
        self.slots().filter(move |slot| slot[0].load(Relaxed) == USED | check as u64).map(|slot| {
            let [address, hash, first, last] = [1, 2, 3, 4].map(|word| slot[word].load(Relaxed));
            let mut line = String::new();
            let bytes =
                slot[SLOT - TEXT..].iter().flat_map(|word| word.load(Relaxed).to_le_bytes());
            line.extend(bytes.take_while(|byte| *byte != 0).map(char::from));
            Case::inherited(hash, address, line, first, last)
        })
    }

    /// Keeps `case` of check number `check`. If there is no room, it is not kept.
    pub fn keep(&self, check: usize, case: &Case) {
        let Some(slot) = self.slots().find(|slot| slot[0].load(Relaxed) & !0xff != USED) else {
            return;
        };
        let words = [case.address, case.hash(), case.first_tsc, case.last_tsc];
        for (to, word) in slot[1..].iter().zip(words) {
            to.store(word, Relaxed);
        }
        // Lines are ASCII but for the names in them; a byte that is not is shown as a question mark.
        let byte = |at: usize| match case.line.as_bytes().get(at) {
            None => 0,
            Some(byte @ b' '..=b'~') => *byte,
            Some(_) => b'?',
        };
        for (number, to) in slot[SLOT - TEXT..].iter().enumerate() {
            to.store(u64::from_le_bytes(core::array::from_fn(|i| byte(8 * number + i))), Relaxed);
        }
        slot[0].store(USED | check as u64, Relaxed);
    }

    /// Forgets `case` of check number `check`.
    pub fn forget(&self, check: usize, address: u64, hash: u64) {
        for slot in self.slots() {
            let same = [(0, USED | check as u64), (1, address), (2, hash)];
            if same.iter().all(|(word, value)| slot[*word].load(Relaxed) == *value) {
                slot[0].store(0, Relaxed);
            }
        }
    }

    /// Forgets the cases of check number `check` at `address`.
    pub fn forget_at(&self, check: usize, address: u64) {
        for slot in self.slots() {
            let same = [(0, USED | check as u64), (1, address)];
            if same.iter().all(|(word, value)| slot[*word].load(Relaxed) == *value) {
                slot[0].store(0, Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use kyozon_monitor::class::Class;
    use kyozon_monitor::finding::Finding;
    use kyozon_monitor::policy::Action;

    #[test]
    fn kept_cases_are_read_as_written() {
        let memory: Vec<AtomicU64> = (0..3 * SLOT).map(|_| AtomicU64::new(0)).collect();
        let kept = Kept::new(&memory);
        let finding = |address| Finding {
            what: "hidden process".into(),
            symbol: "evil, pid 7".into(),
            address,
            ..Finding::new(Class::ProcessHidden)
        };
        for address in [1, 2, 3, 4] {
            kept.keep(1, &Case::new(&finding(address), Action::Repair, 10 * address, 0));
        }
        let cases: Vec<Case> = kept.cases(1).collect();
        assert_eq!(cases.iter().map(|case| case.address).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(cases[1].line.starts_with("hidden process: evil, pid 7 at 0x2"));
        assert!(cases[1].matches(&finding(2)) && !cases[1].matches(&finding(3)));
        assert_eq!((cases[1].first_tsc, kept.cases(0).count()), (20, 0));
        kept.forget(1, 2, cases[1].hash());
        assert_eq!(kept.cases(1).count(), 2);
        // Any content.
        for (index, word) in memory.iter().enumerate() {
            word.store(u64::MAX.rotate_left(index as u32) ^ index as u64, Relaxed);
        }
        memory[SLOT].store(USED, Relaxed);
        assert_eq!(kept.cases(0).count(), 1);
    }
}
