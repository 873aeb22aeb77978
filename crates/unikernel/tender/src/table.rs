//! The numbers of a group: each number's peer, and the state of its latest peer.
//!
//! The number of a guest of the start is never used again. The number of a spawned peer is free again once that peer is
//! gone; the number's next peer has the next generation. All peers see states and generations in [`Lives`].

use crate::lives::Lives;
use crate::peer::Peer;
use crate::quota::peer_bytes;
use kyozon_abi::unikernel::*;
use std::sync::atomic::Ordering;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The use of one number.
#[derive(Clone, Default)]
enum Slot {
    #[default]
    Free,
    Reserved(Reservation),
    Running(Arc<Peer>),
    /// Never used again, or another run's.
    Retired,
}

/// A peer that is being made.
#[derive(Clone, Default)]
struct Reservation {
    /// The family that it joins.
    family: usize,
    /// Bytes of its private memory.
    bytes: u64,
    /// The peer, once it has regions that it can lose.
    peer: Option<Arc<Peer>>,
    /// Whether it must end as soon as it runs.
    must_end: bool,
}

struct Table {
    slots: Vec<Slot>,
    /// Rows of the numbers that peers of this run have or had.
    life: [RegionPeer; MAX_PEERS],
    lives: Lives,
}

/// All numbers of a group.
pub struct PeerTable(RwLock<Table>);

impl Table {
    fn set_state(&mut self, number: usize, state: u32, generation: u32) {
        self.life[number] = RegionPeer { state, generation };
        self.lives.set(number, self.life[number]);
    }
}

impl PeerTable {
    /// The peers of the start, from number `first` on, and free numbers up to `limit`.
    pub fn new(first: usize, peers: Vec<Peer>, limit: usize, lives: Lives) -> Self {
        let mut slots = vec![Slot::Retired; first];
        slots.extend(peers.into_iter().map(|p| Slot::Running(Arc::new(p))));
        slots.resize(limit.min(MAX_PEERS).max(slots.len()), Slot::Free);
        let mut table = Table { slots, life: [RegionPeer::default(); MAX_PEERS], lives };
        for number in 0..table.slots.len() {
            if let Slot::Running(peer) = &table.slots[number] {
                let generation = peer.generation;
                table.set_state(number, PEER_PRESENT, generation);
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

    /// The table that peers see.
    pub fn lives(&self) -> Lives {
        self.read().lives.clone()
    }

    /// Maximum number of peers at the same time.
    pub fn limit(&self) -> usize {
        self.read().slots.len()
    }

    /// The running peer with this number.
    pub fn get(&self, number: usize) -> Option<Arc<Peer>> {
        match self.read().slots.get(number) {
            Some(Slot::Running(peer)) => Some(peer.clone()),
            _ => None,
        }
    }

    /// All running peers of this run, by number.
    pub fn all(&self) -> Vec<(usize, Arc<Peer>)> {
        let table = self.read();
        let here = |(number, slot): (usize, &Slot)| match slot {
            Slot::Running(peer) => Some((number, peer.clone())),
            _ => None,
        };
        table.slots.iter().enumerate().filter_map(here).collect()
    }

    /// State and generation of the number's latest peer of this run.
    pub fn life(&self, number: usize) -> RegionPeer {
        self.read().life.get(number).copied().unwrap_or_default()
    }

    /// Number of a family's peers, and the bytes that the spawned ones cost, including those that are being made.
    pub fn family_use(&self, family: usize) -> (usize, u64) {
        let cost = |(number, slot): (usize, &Slot)| match slot {
            Slot::Running(peer) if peer.family == family => {
                let spawned = number != family;
                Some(if spawned { peer_bytes(peer.memory.layout.bytes) } else { 0 })
            }
            Slot::Reserved(reservation) if reservation.family == family => {
                Some(peer_bytes(reservation.bytes))
            }
            _ => None,
        };
        let table = self.read();
        let costs = table.slots.iter().enumerate().filter_map(cost);
        costs.fold((0, 0), |(count, bytes), cost| (count + 1, bytes + cost))
    }

    /// Reserves the lowest free number, and returns it with its next generation, for a peer with `bytes` bytes of
    /// private memory that joins a family. The reservation ends with [`PeerTable::occupy`] or [`PeerTable::release`].
    pub fn reserve(&self, family: usize, bytes: u64) -> Option<(usize, u32)> {
        let mut table = self.write();
        let number = table.slots.iter().position(|slot| matches!(slot, Slot::Free))?;
        let reservation = Reservation { family, bytes, ..Reservation::default() };
        table.slots[number] = Slot::Reserved(reservation);
        Some((number, table.life[number].generation.wrapping_add(1)))
    }

    /// As [`PeerTable::reserve`], for a number that the keeper chose.
    pub fn reserve_at(&self, number: usize, bytes: u64) {
        if let Some(slot) = self.write().slots.get_mut(number) {
            *slot = Slot::Reserved(Reservation { bytes, ..Reservation::default() });
        }
    }

    /// Adds the peer that is being made to the reservation of its number. From then on it can lose regions.
    pub fn attach(&self, number: usize, peer: &Arc<Peer>) {
        if let Slot::Reserved(reservation) = &mut self.write().slots[number] {
            reservation.peer = Some(peer.clone());
        }
    }

    /// The peer with this number, or the one that is being made for it.
    pub fn get_or_reserved(&self, number: usize) -> Option<Arc<Peer>> {
        match self.read().slots.get(number) {
            Some(Slot::Running(peer) | Slot::Reserved(Reservation { peer: Some(peer), .. })) => {
                Some(peer.clone())
            }
            _ => None,
        }
    }

    /// Marks the peer that is being made for this number, so that it ends as soon as it runs.
    pub fn end_reserved(&self, number: usize) {
        if let Some(Slot::Reserved(reservation)) = self.write().slots.get_mut(number) {
            reservation.must_end = true;
        }
    }

    /// Ends the reservation of a number; it is free again.
    pub fn release(&self, number: usize) {
        self.write().slots[number] = Slot::Free;
    }

    /// Gives a spawned peer its reserved number. `false`, and the number stays reserved, if the peer's family has
    /// ended, or the peer to which it is bound.
    pub fn occupy(&self, number: usize, peer: Arc<Peer>) -> bool {
        let mut table = self.write();
        let running = |number: usize| match table.slots.get(number) {
            Some(Slot::Running(peer)) => Some(peer),
            _ => None,
        };
        let bound = |(number, generation)| {
            running(number).is_some_and(|other| other.generation == generation)
        };
        if running(peer.family).is_none_or(|first| first.family != peer.family)
            || peer.bound.is_some_and(|other| !bound(other))
        {
            return false;
        }
        if matches!(&table.slots[number], Slot::Reserved(reservation) if reservation.must_end) {
            peer.must_end.store(true, Ordering::SeqCst);
        }
        let generation = peer.generation;
        table.slots[number] = Slot::Running(peer);
        table.set_state(number, PEER_PRESENT, generation);
        true
    }

    /// Removes a peer that has ended, and returns the peers that must end with it. `before` runs before any peer sees
    /// the end, and before the number is free.
    pub fn remove(
        &self,
        number: usize,
        state: u32,
        before: impl FnOnce(),
    ) -> Vec<(usize, Arc<Peer>)> {
        let mut table = self.write();
        let Some(Slot::Running(peer)) = table.slots.get(number).cloned() else { return Vec::new() };
        before();
        let is_first = peer.family == number;
        table.slots[number] = if is_first { Slot::Retired } else { Slot::Free };
        table.set_state(number, state, peer.generation);
        drop(table);
        let bound = Some((number, peer.generation));
        let mut others = self.all();
        others.retain(|(_, other)| is_first && other.family == number || other.bound == bound);
        others
    }
}

#[cfg(test)]
mod tests {
    use crate::group::tests::{group, peer};
    use crate::layout::system;
    use crate::lives::Lives;
    use kyozon_abi::unikernel::*;
    use std::sync::Arc;

    #[test]
    fn a_number_is_reused_by_the_next_generation() {
        let group = group(2, true);
        let lives = Lives::new().unwrap();
        let shown = |peer: super::Peer| {
            peer.memory.set_lives(lives.file()).unwrap();
            peer
        };
        let first = vec![shown(peer(true, 0, 1)), shown(peer(true, 1, 1))];
        let table = super::PeerTable::new(0, first, 4, lives.clone());
        assert_eq!((table.limit(), group.peers.table.limit()), (4, 2));
        assert_eq!(group.peers.table.reserve(0, 0), None);
        assert_eq!(table.reserve(0, 0), Some((2, 1)));
        assert_eq!(table.reserve(0, 0), Some((3, 1)));
        assert_eq!(table.reserve(0, 0), None);
        table.release(2);
        assert_eq!(table.reserve(0, 0), Some((2, 1)));
        assert!(table.occupy(2, Arc::new(shown(peer(true, 0, 1)))));
        // All pages show it, including its own.
        let row = |reader: usize, number: u64| {
            let memory = &table.get(reader).unwrap().memory;
            let bytes = memory.get_system::<8>(system::PEERS + number * 8);
            (bytes[0].into(), bytes[4].into())
        };
        for reader in 0..3 {
            assert_eq!(row(reader, 2), (PEER_PRESENT, 1));
            assert_eq!(row(reader, 1), (PEER_PRESENT, 1));
            assert_eq!(row(reader, 3), (PEER_ABSENT, 0));
        }
        let deaths = |reader: usize| {
            let memory = &table.get(reader).unwrap().memory;
            u32::from_le_bytes(memory.get_system(system::PEERS + MAX_PEERS as u64 * 8))
        };
        assert!(table.remove(2, PEER_LEFT, || {}).is_empty());
        assert_eq!((deaths(0), deaths(1)), (0, 0));
        assert_eq!((row(0, 2), row(1, 2)), ((PEER_LEFT, 1), (PEER_LEFT, 1)));
        assert!(table.get(2).is_none());
        assert_eq!(table.reserve(0, 0), Some((2, 2)));
        assert!(table.occupy(2, Arc::new(shown(peer(true, 0, 2)))));
        assert_eq!(row(2, 2), (PEER_PRESENT, 2));
        // A family ends with its first peer: no peer can join it, and the first peer's number is not used again.
        let ended = table.remove(0, PEER_LEFT, || {});
        assert_eq!(ended.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [2]);
        assert!(!table.occupy(3, Arc::new(peer(true, 0, 1))));
        assert!(table.remove(2, PEER_DEAD, || {}).is_empty());
        assert_eq!(deaths(1), 1);
        assert_eq!(table.reserve(0, 0), Some((2, 3)));
        assert!(table.occupy(2, Arc::new(shown(peer(true, 1, 3)))));
        assert_eq!(deaths(2), 1);
        assert!(table.remove(2, PEER_LEFT, || {}).is_empty());
        assert_eq!(table.reserve(0, 0), Some((2, 4)));
        table.release(3);
        assert_eq!(table.reserve(0, 0), Some((3, 1)));
        assert_eq!(table.reserve(0, 0), None);
    }
}
