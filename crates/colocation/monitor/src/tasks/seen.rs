//! The tasks that a pass has seen, with the views that have them.

use crate::random::Random;
use alloc::vec;
use alloc::vec::Vec;

/// A set of kernel addresses with eight bits for each, in a growing hash table.
///
/// An entry is one word: the upper eight bits of a kernel address are always ones, so they hold the eight bits. Each
/// pass has another key, so that nobody can choose addresses whose entries collide.
///
/// If there are more addresses than the set has room for, the next passes take a random part of them each.
pub struct SeenTasks {
    table: Vec<u64>,
    count: usize,
    limit: usize,
    /// An odd factor.
    key: u64,
    /// Number of parts into which addresses fall, a power of two, and the part that this pass takes.
    parts: u64,
    part: u64,
    /// Whether an address was refused for want of room.
    full: bool,
}

const FIRST_SLOTS: usize = 512;
const TOP: u64 = 0xff << 56;
/// Maximum number of parts: with more tasks than Linux can have, something else is wrong.
const MAX_PARTS: u64 = 256;

impl SeenTasks {
    /// An empty set for at most `limit` addresses.
    pub fn new(limit: usize, random: &mut Random) -> Self {
        Self {
            table: vec![0; FIRST_SLOTS],
            count: 0,
            limit,
            key: random.number() | 1,
            parts: 1,
            part: 0,
            full: false,
        }
    }

    /// A hash of `address` in the upper 32 bits: the upper bits of a product are mixed best.
    fn hash(&self, address: u64) -> u64 {
        (address & !TOP).wrapping_mul(self.key)
    }

    /// The slot that holds `address`, or would hold it.
    fn place(&self, address: u64) -> usize {
        let mask = self.table.len() - 1;
        let mut at = (self.hash(address) >> 32) as usize & mask;
        // At most half of the slots are used, so the loop ends.
        while self.table[at] != 0 && (self.table[at] ^ address) & !TOP != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    /// Whether this pass takes tasks whose process has its first thread at `leader`: a process is judged as a whole.
    pub fn covers(&self, leader: u64) -> bool {
        self.hash(leader) >> 56 & (self.parts - 1) == self.part
    }

    /// Whether a random sample of one in `1 << bits` addresses, another one in each pass, has `address`.
    pub fn samples(&self, address: u64, bits: u32) -> bool {
        self.hash(address) >> 40 & ((1 << bits) - 1) == 0
    }

    /// Adds `bits` to those of `address` and returns the old ones; `None` if the set has no room for it.
    pub fn add(&mut self, address: u64, bits: u8) -> Option<u8> {
        if address & TOP != TOP {
            return None;
        }
        let mut at = self.place(address);
        if self.table[at] == 0 {
            if self.count >= self.limit {
                self.full = true;
                return None;
            }
            if 2 * (self.count + 1) > self.table.len() {
                self.grow();
                at = self.place(address);
            }
            self.count += 1;
            self.table[at] = address & !TOP;
        }
        let before = (self.table[at] >> 56) as u8;
        self.table[at] |= u64::from(bits) << 56;
        Some(before)
    }

    /// Adds `bits` to those of `address` if the set has it with one of the bits `has`; returns whether it does.
    pub fn add_if(&mut self, address: u64, has: u8, bits: u8) -> bool {
        if address & TOP != TOP {
            return false;
        }
        let at = self.place(address);
        let entry = &mut self.table[at];
        let is_there = *entry != 0 && (*entry >> 56) as u8 & has != 0;
        if is_there {
            *entry |= u64::from(bits) << 56;
        }
        is_there
    }

    fn grow(&mut self) {
        let slots = 2 * self.table.len();
        for entry in core::mem::replace(&mut self.table, vec![0; slots]) {
            if entry != 0 {
                let at = self.place(entry);
                self.table[at] = entry;
            }
        }
    }

    /// Number of slots to [`take`](Self::take) from.
    pub fn slots(&self) -> usize {
        self.table.len()
    }

    /// Empties a slot. After the first call, nothing may be added until all slots were taken and [`clear`](Self::clear)
    /// was called.
    pub fn take(&mut self, slot: usize) -> Option<(u64, u8)> {
        let entry = core::mem::take(self.table.get_mut(slot)?);
        (entry != 0).then_some((entry | TOP, (entry >> 56) as u8))
    }

    /// Empties the first full slot among `count` from `slot` on; also returns the slot to continue at.
    pub fn take_from(&mut self, slot: usize, count: usize) -> (Option<(u64, u8)>, usize) {
        let end = self.table.len().min(slot + count);
        let full = (slot..end).find(|at| self.table[*at] != 0);
        (full.and_then(|at| self.take(at)), full.map_or(end, |at| at + 1))
    }

    /// Ends a pass after all slots were taken; returns the number of addresses. The next pass gets another key, and as
    /// large a part of the addresses as the set has room for.
    pub fn clear(&mut self, random: &mut Random) -> usize {
        let count = core::mem::take(&mut self.count);
        if core::mem::take(&mut self.full) {
            self.parts = (2 * self.parts).min(MAX_PARTS);
        } else if count < self.limit / 4 {
            self.parts = (self.parts / 2).max(1);
        }
        self.key = random.number() | 1;
        self.part = random.below(self.parts);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn address(i: u64) -> u64 {
        0xffff_8880_0000_0000 + i * 64
    }

    #[test]
    fn every_added_bit_is_kept_up_to_the_limit() {
        let mut random = Random::new(1);
        let mut seen = SeenTasks::new(5000, &mut random);
        for round in 0..2 {
            for i in 0..5000 {
                assert_eq!(seen.add(address(i), 1), Some(0), "{round} {i}");
                assert_eq!(seen.add(address(i), 0x84), Some(1));
            }
            assert_eq!(seen.add(address(5000), 1), None);
            assert_eq!(seen.add(address(7), 2), Some(0x85));
            assert!(seen.add_if(address(8), 0x80, 2) && !seen.add_if(address(8), 0x40, 8));
            assert!(
                !seen.add_if(address(5000), 0xff, 2) && !seen.add_if(0x7f00_0000_0000, 0xff, 2)
            );
            assert_eq!(seen.add(0x0000_7f00_0000_0000, 1), None);
            let mut all: Vec<_> = (0..seen.slots()).filter_map(|slot| seen.take(slot)).collect();
            all.sort();
            assert_eq!(all.len(), 5000);
            assert_eq!((all[7], all[8]), ((address(7), 0x87), (address(8), 0x87)));
            assert_eq!(seen.clear(&mut random), 5000);
        }
    }

    #[test]
    fn every_part_of_a_crowd_gets_its_turn() {
        let mut random = Random::new(2);
        let mut seen = SeenTasks::new(100, &mut random);
        let mut covered = std::collections::BTreeSet::new();
        for pass in 0..200 {
            let mine: Vec<u64> = (0..1000).map(address).filter(|at| seen.covers(*at)).collect();
            let refused = mine.iter().filter(|at| seen.add(**at, 1).is_none()).count();
            assert!(pass < 10 || refused < 50, "{refused} refused in pass {pass}");
            covered.extend(mine.into_iter().skip(refused));
            (0..seen.slots()).for_each(|slot| {
                seen.take(slot);
            });
            seen.clear(&mut random);
        }
        assert_eq!(covered.len(), 1000);
        for _ in 0..10 {
            seen.clear(&mut random);
        }
        assert!((0..1000).all(|i| seen.covers(address(i))), "everything fits again");
    }

    /// With a fixed factor, an attacker could pick addresses whose entries all begin at the same slot.
    #[test]
    fn keys_of_two_passes_differ() {
        let mut random = Random::new(3);
        let mut seen = SeenTasks::new(100, &mut random);
        let before: Vec<usize> = (0..64).map(|i| seen.place(address(i))).collect();
        seen.clear(&mut random);
        let after: Vec<usize> = (0..64).map(|i| seen.place(address(i))).collect();
        assert_ne!(before, after);
    }
}
