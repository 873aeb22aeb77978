//! Pointers as they were when their objects were seen first.
//!
//! A pass meets them in nearly the order of the pass before: what comes next is mostly what came next the last time,
//! and found without a search.

use super::source::offset;
use crate::kernel::Kernel;
use crate::memory::{mixed, KernelMemory};
use crate::owner::{Kind, OwnerIndex};
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Maximum number of pointers; further ones are not compared with their first looks.
pub(super) const MAX_FIRST: usize = 1 << 14;

/// A pointer as it was when its object was seen first.
#[derive(Clone, Copy, Debug)]
pub(super) struct First {
    /// What tells the object from another one in the same memory.
    pub stamp: u64,
    pub value: u64,
    /// Who owned what `value` led to: see [`Homes::of`].
    pub home: u32,
    /// The last pass that saw it.
    pub pass: u32,
}

pub(super) const WANTS: Wants = Wants {
    symbols: &[],
    members: &[("kernfs_node", "id", Optional), ("module", "mkobj.kobj.sd", Optional)],
    constants: &[],
};

/// What tells owners of memory from others that had the same memory before.
#[derive(Debug)]
pub(super) struct Homes {
    /// Offsets of a module's pointer to its directory in sysfs, and of the number there, which Linux gives only once.
    directory: Option<(u64, u64)>,
}

impl Homes {
    pub fn new(profile: &Profile<'_>) -> Self {
        let directory = offset(profile, "module", "mkobj.kobj.sd");
        Self { directory: directory.zip(offset(profile, "kernfs_node", "id")) }
    }

    /// Who owns `address`: 0 for the kernel's image; `None` if nobody does, or a module that is not live.
    pub fn of<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        index: &OwnerIndex,
        address: u64,
    ) -> Option<u32> {
        if kernel.in_image(address) {
            return Some(0);
        }
        let code = index.find(address)?;
        let number = match (code.kind, self.directory) {
            (Kind::Module | Kind::Data, Some((directory, number))) => {
                let directory = kernel.u64(code.object.wrapping_add(directory))?;
                kernel.u64(directory.wrapping_add(number))?
            }
            _ => 0,
        };
        Some(mixed(number, code.object) as u32)
    }
}

/// The first looks, by the pointers' addresses.
#[derive(Debug, Default)]
pub(super) struct FirstLooks {
    /// In the order in which they were met.
    all: Vec<(u64, First)>,
    /// The places there.
    places: BTreeMap<u64, usize>,
    /// The place behind that of the last look.
    next: usize,
}

impl FirstLooks {
    pub fn get(&self, slot: u64) -> Option<&First> {
        self.all.get(*self.places.get(&slot)?).map(|(_, first)| first)
    }

    /// The same for the next pointer of a pass.
    pub fn follow(&mut self, slot: u64) -> Option<&mut First> {
        let place = match self.all.get(self.next) {
            Some((known, _)) if *known == slot => self.next,
            _ => *self.places.get(&slot)?,
        };
        self.next = place + 1;
        self.all.get_mut(place).map(|(_, first)| first)
    }

    /// Makes `first` that of `slot`, if there is room.
    pub fn insert(&mut self, slot: u64, first: First) {
        if let Some(known) = self.follow(slot) {
            *known = first;
        } else if self.all.len() < MAX_FIRST {
            self.places.insert(slot, self.all.len());
            self.all.push((slot, first));
        }
    }

    /// Drops those that `stays` is false for. The next pass begins.
    pub fn retain(&mut self, mut stays: impl FnMut(u64, &First) -> bool) {
        self.next = 0;
        let mut at = 0;
        while let Some((slot, first)) = self.all.get(at) {
            if stays(*slot, first) {
                at += 1;
                continue;
            }
            self.places.remove(slot);
            self.all.swap_remove(at);
            if let Some((moved, _)) = self.all.get(at) {
                self.places.insert(*moved, at);
            }
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        assert_eq!(self.all.len(), self.places.len());
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn looks_are_those_of_their_slots_in_whatever_order_they_are_met() {
        let mut random = Random::new(1);
        let mut looks = FirstLooks::default();
        let mut model = BTreeMap::new();
        for pass in 0..200 {
            let mut slots: Vec<u64> = (0..40).collect();
            if pass % 3 == 0 {
                random.shuffle(&mut slots);
            }
            slots.retain(|_| random.below(4) != 0);
            for slot in slots {
                let value = model.get(&slot).copied();
                assert_eq!(looks.follow(slot).map(|first| first.value), value, "{pass} {slot}");
                assert_eq!(looks.get(slot).map(|first| first.value), value, "{pass} {slot}");
                if random.below(4) == 0 {
                    let value = random.number();
                    looks.insert(slot, First { stamp: 0, value, home: 0, pass });
                    model.insert(slot, value);
                }
            }
            let gone = random.below(40);
            looks.retain(|slot, first| slot % 40 != gone && first.value % 8 != 0);
            model.retain(|slot, value| slot % 40 != gone && *value % 8 != 0);
            assert_eq!(looks.len(), model.len());
        }
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for() {
        let mut looks = FirstLooks::default();
        let first = First { stamp: 0, value: 0, home: 0, pass: 0 };
        (0..MAX_FIRST as u64 + 2).for_each(|slot| looks.insert(slot, first));
        assert_eq!(looks.len(), MAX_FIRST);
        assert!(looks.get(MAX_FIRST as u64).is_none());
    }
}
