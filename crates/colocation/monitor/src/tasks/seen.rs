//! The tasks that a pass has seen, with the views that have them.

use alloc::vec;
use alloc::vec::Vec;

/// A set of kernel addresses with eight bits for each, in a growing hash table.
///
/// An entry is one word: the upper eight bits of a kernel address are always ones, so they hold the eight bits.
pub struct SeenTasks {
    table: Vec<u64>,
    count: usize,
    limit: usize,
}

const FIRST_SLOTS: usize = 512;
const TOP: u64 = 0xff << 56;

impl SeenTasks {
    /// An empty set for at most `limit` addresses.
    pub fn new(limit: usize) -> Self {
        Self { table: vec![0; FIRST_SLOTS], count: 0, limit }
    }

    /// The slot that holds `address`, or would hold it.
    fn place(&self, address: u64) -> usize {
        let mask = self.table.len() - 1;
        // The multiplier is 2^64 divided by the golden ratio; the upper bits of the product are mixed best.
        let mut at = ((address & !TOP).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        // At most half of the slots are used, so the loop ends.
        while self.table[at] != 0 && (self.table[at] ^ address) & !TOP != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    /// Adds `bits` to those of `address` and returns the old ones; `None` if the set has no room for it.
    pub fn add(&mut self, address: u64, bits: u8) -> Option<u8> {
        if address & TOP != TOP {
            return None;
        }
        let mut at = self.place(address);
        if self.table[at] == 0 {
            if self.count >= self.limit {
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

    fn grow(&mut self) {
        let slots = 2 * self.table.len();
        for entry in core::mem::replace(&mut self.table, vec![0; slots]) {
            if entry != 0 {
                let at = self.place(entry);
                self.table[at] = entry;
            }
        }
    }

    /// Number of addresses in the set.
    pub fn count(&self) -> usize {
        self.count
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

    /// Ends a pass after all slots were taken; returns the number of addresses.
    pub fn clear(&mut self) -> usize {
        core::mem::take(&mut self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn every_added_bit_is_kept_up_to_the_limit() {
        let mut seen = SeenTasks::new(5000);
        let address = |i: u64| 0xffff_8880_0000_0000 + i * 64;
        for round in 0..2 {
            for i in 0..5000 {
                assert_eq!(seen.add(address(i), 1), Some(0), "{round} {i}");
                assert_eq!(seen.add(address(i), 0x84), Some(1));
            }
            assert_eq!(seen.add(address(5000), 1), None);
            assert_eq!(seen.add(address(7), 2), Some(0x85));
            assert_eq!(seen.add(0x0000_7f00_0000_0000, 1), None);
            let mut all: Vec<_> = (0..seen.slots()).filter_map(|slot| seen.take(slot)).collect();
            all.sort();
            assert_eq!(all.len(), 5000);
            assert_eq!(all[7], (address(7), 0x87));
            assert_eq!(seen.clear(), 5000);
        }
    }
}
