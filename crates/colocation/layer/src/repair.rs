//! Repair transactions: up to 16 words of Linux's memory, all or none.

use crate::linux::{contains, Linux};
use kyozon_abi::layer::{
    RepairRequest, RepairWord, MAX_REPAIR_WORDS, REPAIR_BUSY, REPAIR_CHANGED, REPAIR_DONE,
    REPAIR_INVALID,
};

const WORD: u64 = 8;

/// The words of `request`, if it is well formed: 1 to 16 words, each aligned and in RAM, no address twice.
fn words<'a>(request: &'a RepairRequest, linux: &impl Linux) -> Option<&'a [RepairWord]> {
    let count = usize::try_from(request.count).ok()?;
    if count == 0 || count > MAX_REPAIR_WORDS {
        return None;
    }
    let words = &request.words[..count];
    let good = words.iter().enumerate().all(|(i, w)| {
        w.address % WORD == 0
            && contains(linux.ram(), w.address, WORD)
            && words[..i].iter().all(|earlier| earlier.address != w.address)
    });
    good.then_some(words)
}

/// Runs one transaction and returns `REPAIR_*`. The caller owns `request`: it does not change meanwhile.
pub fn repair(request: &RepairRequest, linux: &mut impl Linux) -> i64 {
    let Some(words) = words(request, linux) else {
        return REPAIR_INVALID;
    };
    if !linux.park() {
        return REPAIR_BUSY;
    }
    let as_expected = words.iter().all(|w| linux.read(w.address) == w.expected);
    if as_expected {
        for w in words {
            linux.write(w.address, w.value);
        }
    }
    linux.release();
    if as_expected {
        REPAIR_DONE
    } else {
        REPAIR_CHANGED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kyozon_abi::layer::Range;
    use std::collections::BTreeMap;

    #[derive(Default)]
    struct Fake {
        ram: Vec<Range>,
        words: BTreeMap<u64, u64>,
        parked: bool,
        stubborn: bool,
        parks: u32,
        releases: u32,
    }

    impl Linux for Fake {
        fn ram(&self) -> &[Range] {
            &self.ram
        }
        fn read(&mut self, address: u64) -> u64 {
            assert!(self.parked, "a word is compared while others may write");
            *self.words.get(&address).unwrap_or(&0)
        }
        fn write(&mut self, address: u64, value: u64) {
            assert!(self.parked);
            self.words.insert(address, value);
        }
        fn park(&mut self) -> bool {
            self.parks += 1;
            self.parked = !self.stubborn;
            self.parked
        }
        fn release(&mut self) {
            assert!(self.parked);
            self.parked = false;
            self.releases += 1;
        }
    }

    fn fake() -> Fake {
        Fake { ram: vec![Range { base: 0x1000, bytes: 0x1000 }], ..Fake::default() }
    }

    fn request(list: &[(u64, u64, u64)]) -> RepairRequest {
        let mut r = RepairRequest { count: list.len() as u64, words: Default::default() };
        for (w, &(address, expected, value)) in r.words.iter_mut().zip(list) {
            *w = RepairWord { address, expected, value };
        }
        r
    }

    #[test]
    fn all_words_are_written() {
        let mut linux = fake();
        linux.words.insert(0x1000, 7);
        let r = request(&[(0x1000, 7, 8), (0x1ff8, 0, 9)]);
        assert_eq!(repair(&r, &mut linux), REPAIR_DONE);
        assert_eq!((linux.words[&0x1000], linux.words[&0x1ff8]), (8, 9));
        assert_eq!((linux.parks, linux.releases), (1, 1));
    }

    #[test]
    fn one_changed_word_writes_none() {
        let mut linux = fake();
        let r = request(&[(0x1000, 0, 8), (0x1008, 1, 9)]);
        assert_eq!(repair(&r, &mut linux), REPAIR_CHANGED);
        assert!(linux.words.is_empty());
        assert_eq!((linux.parks, linux.releases), (1, 1));
    }

    #[test]
    fn malformed_requests_park_no_cpu() {
        let mut too_many = request(&[(0x1000, 0, 1)]);
        too_many.count = 17;
        let mut huge = too_many;
        huge.count = u64::MAX;
        for r in [
            request(&[]),
            too_many,
            huge,
            request(&[(0x1004, 0, 1)]),
            request(&[(0x2000, 0, 1)]),
            request(&[(0x0ff8, 0, 1)]),
            request(&[(u64::MAX - 7, 0, 1)]),
            request(&[(0x1000, 0, 1), (0x1008, 0, 1), (0x1000, 0, 2)]),
        ] {
            let mut linux = fake();
            assert_eq!(repair(&r, &mut linux), REPAIR_INVALID, "{r:?}");
            assert_eq!(linux.parks, 0);
        }
    }

    #[test]
    fn cpus_that_do_not_park_mean_busy() {
        let mut linux = Fake { stubborn: true, ..fake() };
        assert_eq!(repair(&request(&[(0x1000, 0, 1)]), &mut linux), REPAIR_BUSY);
        assert!(linux.words.is_empty());
        assert_eq!(linux.releases, 0);
    }
}
