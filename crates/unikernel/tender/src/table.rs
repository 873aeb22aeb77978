//! Numbers of a group: the peer that has each, and the state of its last one.
//!
//! A guest that was there at the start keeps its number for ever. A number that a spawned peer had is free again when
//! that is gone; its next peer is of another generation. Each peer reads the table of all of them in a page of its
//! own: it is written to every one of these pages whenever it changes.

use crate::layout::system;
use crate::memory::Memory;
use crate::peer::Peer;
use kyozon_abi::unikernel::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};
use vm_memory::VolatileMemory;

/// One number.
#[derive(Clone, Default)]
enum Slot {
    #[default]
    Free,
    Reserved(Coming),
    Running(Arc<Peer>),
    /// Never used again, or of another run.
    Retired,
}

/// A peer that is being made.
#[derive(Clone, Default)]
struct Coming {
    /// Bytes of its own.
    bytes: u64,
    /// Itself, where it has something that it can lose.
    peer: Option<Arc<Peer>>,
    /// It has to end as soon as it has begun.
    lost: bool,
}

struct Table {
    slots: Vec<Slot>,
    life: [RegionPeer; MAX_PEERS],
}

/// All numbers of a group.
pub struct PeerTable(RwLock<Table>);

/// Writes one row of the table into a peer's page, the generation first: a reader that sees a peer present sees the
/// right generation.
fn show(memory: &Memory, number: usize, row: RegionPeer) {
    let at = system::LIFE as usize + number * size_of::<RegionPeer>();
    for (field, value) in [(4, row.generation), (0, row.state)] {
        if let Ok(word) = memory.block.get_atomic_ref::<AtomicU32>(at + field) {
            word.store(value, Ordering::Release);
        }
    }
}

impl Table {
    fn set_state(&mut self, number: usize, state: u32, generation: u32) {
        self.life[number] = RegionPeer { state, generation };
        for slot in &self.slots {
            if let Slot::Running(peer) = slot {
                show(&peer.memory, number, self.life[number]);
            }
        }
    }
}

impl PeerTable {
    /// The peers that are there at the start, from number `first` on, and room for `limit` in all.
    pub fn new(first: usize, peers: Vec<Peer>, limit: usize) -> Self {
        let mut slots = vec![Slot::Retired; first];
        slots.extend(peers.into_iter().map(|p| Slot::Running(Arc::new(p))));
        slots.resize(limit.min(MAX_PEERS).max(slots.len()), Slot::Free);
        let mut table = Table { slots, life: [RegionPeer::default(); MAX_PEERS] };
        for number in 0..table.slots.len() {
            if matches!(table.slots[number], Slot::Running(_)) {
                table.set_state(number, PEER_PRESENT, 1);
            }
        }
        Self(RwLock::new(table))
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.0.read().unwrap_or_else(|e| e.into_inner())
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.0.write().unwrap_or_else(|e| e.into_inner())
    }

    /// How many peers there can be at once.
    pub fn limit(&self) -> usize {
        self.read().slots.len()
    }

    /// The peer that has a number.
    pub fn get(&self, number: usize) -> Option<Arc<Peer>> {
        match self.read().slots.get(number) {
            Some(Slot::Running(peer)) => Some(peer.clone()),
            _ => None,
        }
    }

    /// All peers that are here.
    pub fn all(&self) -> Vec<(usize, Arc<Peer>)> {
        let table = self.read();
        let here = |(number, slot): (usize, &Slot)| match slot {
            Slot::Running(peer) => Some((number, peer.clone())),
            _ => None,
        };
        table.slots.iter().enumerate().filter_map(here).collect()
    }

    /// What became of a number.
    pub fn life(&self, number: usize) -> RegionPeer {
        self.read().life.get(number).copied().unwrap_or_default()
    }

    /// Bytes of all peers that are here or are being made: each has its own, and the first of a family what it shares.
    pub fn bytes(&self) -> u64 {
        let bytes = |slot: &Slot| match slot {
            Slot::Running(peer) => peer.memory.layout.bytes,
            Slot::Reserved(coming) => coming.bytes,
            Slot::Free | Slot::Retired => 0,
        };
        self.read().slots.iter().map(bytes).fold(0, u64::saturating_add)
    }

    /// The lowest free number, and the generation that its next peer is of, with `bytes` bytes of its own. It is kept
    /// until [`PeerTable::take`] or [`PeerTable::give_back`].
    pub fn reserve(&self, bytes: u64) -> Option<(usize, u32)> {
        let mut table = self.write();
        let number = table.slots.iter().position(|slot| matches!(slot, Slot::Free))?;
        table.slots[number] = Slot::Reserved(Coming { bytes, ..Coming::default() });
        Some((number, table.life[number].generation.wrapping_add(1)))
    }

    /// As [`PeerTable::reserve`], where somebody else knows which number is free.
    pub fn reserve_at(&self, number: usize, bytes: u64) {
        if let Some(slot) = self.write().slots.get_mut(number) {
            *slot = Slot::Reserved(Coming { bytes, ..Coming::default() });
        }
    }

    /// The peer that is being made for a number has regions from now on, which it can lose.
    pub fn prepare(&self, number: usize, peer: &Arc<Peer>) {
        if let Slot::Reserved(coming) = &mut self.write().slots[number] {
            coming.peer = Some(peer.clone());
        }
    }

    /// The peer that has a number, or will have it.
    pub fn made(&self, number: usize) -> Option<Arc<Peer>> {
        match self.read().slots.get(number) {
            Some(Slot::Running(peer) | Slot::Reserved(Coming { peer: Some(peer), .. })) => {
                Some(peer.clone())
            }
            _ => None,
        }
    }

    /// The peer that is being made for this number has to end once it has begun.
    pub fn lose(&self, number: usize) {
        if let Some(Slot::Reserved(coming)) = self.write().slots.get_mut(number) {
            coming.lost = true;
        }
    }

    /// The number was not needed.
    pub fn give_back(&self, number: usize) {
        self.write().slots[number] = Slot::Free;
    }

    /// A spawned peer takes the number that was reserved. `false`, and it stays reserved, where its family has
    /// ended, or the peer that it is bound to.
    pub fn take(&self, number: usize, peer: Arc<Peer>) -> bool {
        let mut table = self.write();
        let here = |number: usize, generation| matches!(table.slots.get(number), Some(Slot::Running(p)) if p.generation == generation);
        if !here(peer.family, 1) || peer.bound.is_some_and(|(to, of)| !here(to, of)) {
            return false;
        }
        if matches!(&table.slots[number], Slot::Reserved(coming) if coming.lost) {
            peer.lost.store(true, Ordering::SeqCst);
        }
        for (other, row) in table.life.iter().enumerate() {
            show(&peer.memory, other, *row);
        }
        let generation = peer.generation;
        table.slots[number] = Slot::Running(peer);
        table.set_state(number, PEER_PRESENT, generation);
        true
    }

    /// The peer with a number is gone; returns the peers that end with it. `first` runs before any peer sees that, and
    /// before the number is free.
    pub fn leave(
        &self,
        number: usize,
        state: u32,
        first: impl FnOnce(),
    ) -> Vec<(usize, Arc<Peer>)> {
        let mut table = self.write();
        let Some(Slot::Running(peer)) = table.slots.get(number).cloned() else { return Vec::new() };
        first();
        let first = peer.family == number;
        table.slots[number] = if first { Slot::Retired } else { Slot::Free };
        table.set_state(number, state, peer.generation);
        drop(table);
        let bound = Some((number, peer.generation));
        let mut others = self.all();
        others.retain(|(_, other)| first && other.family == number || other.bound == bound);
        others
    }
}

#[cfg(test)]
mod tests {
    use crate::group::tests::{group, peer};
    use crate::layout::system;
    use kyozon_abi::unikernel::*;
    use std::sync::Arc;

    #[test]
    fn a_number_is_used_again_by_another_generation() {
        let group = group(2, true);
        let table = super::PeerTable::new(0, vec![peer(true, 0, 1), peer(true, 1, 1)], 4);
        assert_eq!((table.limit(), group.peers.table.limit()), (4, 2));
        assert_eq!(group.peers.table.reserve(0), None);
        assert_eq!(table.reserve(0), Some((2, 1)));
        assert_eq!(table.reserve(0), Some((3, 1)));
        assert_eq!(table.reserve(0), None);
        table.give_back(2);
        assert_eq!(table.reserve(0), Some((2, 1)));
        assert!(table.take(2, Arc::new(peer(true, 0, 1))));
        // Every page tells of it, its own too.
        let told = |reader: usize, number: u64| {
            let memory = &table.get(reader).unwrap().memory;
            let row = memory.get_system::<8>(system::LIFE + number * 8);
            (row[0].into(), row[4].into())
        };
        for reader in 0..3 {
            assert_eq!(told(reader, 2), (PEER_PRESENT, 1));
            assert_eq!(told(reader, 1), (PEER_PRESENT, 1));
            assert_eq!(told(reader, 3), (PEER_ABSENT, 0));
        }
        assert!(table.leave(2, PEER_LEFT, || {}).is_empty());
        assert_eq!((told(0, 2), told(1, 2)), ((PEER_LEFT, 1), (PEER_LEFT, 1)));
        assert!(table.get(2).is_none());
        assert_eq!(table.reserve(0), Some((2, 2)));
        assert!(table.take(2, Arc::new(peer(true, 0, 2))));
        assert_eq!(told(2, 2), (PEER_PRESENT, 2));
        // With the first of a family go all, and nobody joins it any more; its number is for nobody.
        let ended = table.leave(0, PEER_LEFT, || {});
        assert_eq!(ended.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [2]);
        assert!(!table.take(3, Arc::new(peer(true, 0, 1))));
        assert!(table.leave(2, PEER_DEAD, || {}).is_empty());
        assert_eq!(table.reserve(0), Some((2, 3)));
        table.give_back(3);
        assert_eq!(table.reserve(0), Some((3, 1)));
        assert_eq!(table.reserve(0), None);
    }
}
