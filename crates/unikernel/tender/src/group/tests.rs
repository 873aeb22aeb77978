//! A group whose guests never run.

use super::*;
use crate::backend::{Mapping, Space};
use crate::bond::Bond;
use crate::device::Devices;
use crate::elf;
use crate::layout::{Layout, PAGE};
use crate::lives::Lives;
use crate::memory::Memory;
use crate::quota::{peer_bytes, Quota};
use crate::region::ALL;
use crate::tokens::Tokens;
use std::sync::atomic::AtomicBool;

/// An address space without a guest; the field says whether it can unmap regions.
struct IdleSpace(bool);

impl Space for IdleSpace {
    fn features(&self) -> u64 {
        if self.0 {
            FEATURE_REGIONS
        } else {
            0
        }
    }
    fn map(&self, _: &Mapping) -> Result<()> {
        Ok(())
    }
    fn unmap(&self, _: &Mapping) -> Result<bool> {
        Ok(self.0)
    }
}

pub fn peer(regions: bool, family: usize, generation: u32) -> Peer {
    let file = elf::tests::image();
    let image = elf::parse(&file).unwrap();
    let layout = Layout::new(&image, 1 << 20).unwrap();
    let memory = Arc::new(Memory::new(&image, &file, layout, false).unwrap());
    let (space, kick, must_end) =
        (Arc::new(IdleSpace(regions)), OnceLock::new(), AtomicBool::new(false));
    let (bond, devices) = (Bond::default(), Devices::default());
    Peer { memory, space, kick, must_end, family, generation, bound: None, bond, devices }
}

pub fn group(peers: usize, regions: bool) -> Group {
    let tokens = Tokens::new(peers, peers).unwrap();
    let first = (0..peers).map(|number| peer(regions, number, 1)).collect();
    Group::new(Peers::new(0, first, tokens, Lives::new().unwrap()))
}

#[test]
fn a_token_persists_and_does_not_count() {
    let group = group(2, true);
    group.peers.ring(1);
    group.peers.ring(1);
    group.peers.ring(64);
    assert!(!group.peers.park(1, NO_DEADLINE));
    assert!(group.peers.park(1, 0));
    assert!(group.peers.park(0, group.peers.clock.now() + 1_000_000));
    group.remove(0, PEER_DEAD, Parting::Died(1));
    assert!(!group.peers.park(1, NO_DEADLINE));
    group.stop();
    assert!(!group.peers.park(0, NO_DEADLINE) && group.peers.must_end(0));
}

#[test]
fn only_granted_peers_can_map_a_region() {
    let group = group(3, true);
    let number = group.create(0, b"x", 4 * PAGE, None).unwrap();
    assert_eq!(group.create(1, b"x", 4 * PAGE, None), Err(ERROR_EXISTS));
    assert_eq!(group.open(1, b"x"), Err(ERROR_NAME));
    assert_eq!(group.map(1, number, 1), Err(ERROR_NAME));
    assert_eq!(group.map(0, number, 3), Ok(0));
    assert_eq!(group.grant(0, number, 1, REGION_READ), Ok(0));
    assert_eq!(group.grant(1, number, 2, REGION_READ), Err(ERROR_RIGHT));
    assert_eq!(group.grant(0, number, 3, REGION_READ), Err(ERROR_NAME));
    let shared = group.open(1, b"x").unwrap();
    assert_eq!((shared.rights, shared.number, shared.bytes), (REGION_READ, number, 4 * PAGE));
    assert_eq!(group.map(1, number, 3), Err(ERROR_RIGHT));
    assert_eq!(group.map(1, number, 2), Err(ERROR_ARGUMENT));
    assert_eq!(group.map(1, number, 1), Ok(0));
    let data = shared.address + PAGE;
    assert!(group.peers.table.get(0).unwrap().memory.write(data, &[7]).is_ok());
    assert_eq!(group.peers.table.get(1).unwrap().memory.word(data), Ok(7));
    assert!(group.peers.table.get(1).unwrap().memory.write(data, &[8]).is_err());
    assert!(
        group.peers.table.get(0).unwrap().memory.write(shared.address, &[8]).is_err(),
        "only the tender writes the header"
    );
    assert!(group.peers.table.get(2).unwrap().memory.word(data).is_err());
    assert_eq!(group.rendezvous(0, number, 2, 0), Ok(2));
    assert_eq!(group.rendezvous(0, number, 3, 0), Err(ERROR_TIMEOUT));
    assert_eq!(group.rendezvous(0, number, 4, 0), Err(ERROR_ARGUMENT));
    // A mapping with other rights keeps the peer's generation; one with more rights than granted is removed.
    assert_eq!(group.grant(0, number, 1, ALL), Ok(0));
    assert_eq!(group.map(1, number, 3), Ok(0));
    assert_eq!(group.local.lock()[0].state_of(1), (PEER_PRESENT, 1));
    assert_eq!(group.grant(0, number, 1, REGION_READ), Ok(0));
    assert_eq!(group.local.lock()[0].state_of(1), (PEER_DEAD, 1));
    assert!(group.peers.table.get(1).unwrap().memory.word(data).is_err());
    assert_eq!(group.map(1, number, 1), Ok(0));
    // A revoked region is unmapped, and the header shows that.
    assert_eq!(group.grant(0, number, 1, 0), Ok(0));
    assert!(group.peers.table.get(1).unwrap().memory.word(data).is_err());
    assert_eq!(group.local.lock()[0].state_of(1), (PEER_DEAD, 2));
    assert_eq!(group.map(1, number, 1), Err(ERROR_NAME));
    group.remove(0, PEER_LEFT, Parting::Whole);
    assert_eq!(group.local.lock()[0].state_of(0), (PEER_LEFT, 1));
}

#[test]
fn a_guest_that_cannot_unmap_must_end() {
    let group = group(2, false);
    group.local.add(&group.peers, "a", 2 * PAGE, None, true).unwrap();
    assert_eq!(group.create(0, b"b", 2 * PAGE, None), Err(ERROR_UNSUPPORTED));
    assert_eq!(group.map(0, 0, 3), Ok(0));
    assert_eq!(group.map(0, 0, 1), Err(ERROR_UNSUPPORTED));
    assert_eq!(group.grant(0, 0, 1, 0), Err(ERROR_RIGHT));
    group.local.lock()[0].owner = Some(0);
    assert_eq!(group.grant(0, 0, 1, 0), Ok(0));
    assert!(group.peers.must_end(1) && !group.peers.must_end(0));
}

#[test]
fn budget_and_region_count_are_limited() {
    let mut group = group(1, true);
    let budget = MAX_REGIONS as u64 * 2 * PAGE;
    group.local.quota = Quota::new(1, 1, None, budget);
    assert_eq!(group.create(0, b"big", budget + PAGE, None), Err(ERROR_FULL));
    for i in 0..MAX_REGIONS {
        assert_eq!(group.create(0, format!("r{i}").as_bytes(), 2 * PAGE, None), Ok(i as u64));
    }
    assert_eq!(group.create(0, b"more", 2 * PAGE, None), Err(ERROR_FULL));
    assert!(group.local.add(&group.peers, "more", 2 * PAGE, None, true).is_err());
    assert_eq!(group.create(0, b"no name", 2 * PAGE, None), Err(ERROR_ARGUMENT));
}

#[test]
fn reservations_and_regions_share_one_limit() {
    let tokens = Tokens::new(4, 4).unwrap();
    let mut group =
        Group::new(Peers::new(0, vec![peer(true, 0, 1)], tokens, Lives::new().unwrap()));
    group.local.quota = Quota::new(1, 4, None, 2 * PAGE + peer_bytes(3 * PAGE));
    assert_eq!(group.create(0, b"a", 2 * PAGE, None), Ok(0));
    assert_eq!(group.reserve(0, 4 * PAGE), None);
    assert_eq!(group.reserve(0, 2 * PAGE), Some((1, 1)));
    assert_eq!(group.create(0, b"b", 2 * PAGE, None), Err(ERROR_FULL));
    group.release(1);
    assert_eq!(group.create(0, b"b", 2 * PAGE, None), Ok(1));
}

#[test]
fn a_family_leaves_numbers_and_regions_to_others() {
    let tokens = Tokens::new(6, 6).unwrap();
    let first = vec![peer(true, 0, 1), peer(true, 1, 1)];
    let mut group = Group::new(Peers::new(0, first, tokens, Lives::new().unwrap()));
    group.local.quota = Quota::new(2, 6, None, 64 << 20);
    assert_eq!([(); 3].map(|()| group.reserve(0, PAGE)), [Some((2, 1)), Some((3, 1)), None]);
    assert_eq!([(); 3].map(|()| group.reserve(1, PAGE)), [Some((4, 1)), Some((5, 1)), None]);
    let create = |peer, name: &str| group.create(peer, name.as_bytes(), 2 * PAGE, None);
    let half = MAX_REGIONS / 2;
    assert!((0..half).all(|i| create(0, &format!("a{i}")).is_ok()));
    assert_eq!(create(0, "a"), Err(ERROR_FULL));
    assert!((0..half).all(|i| create(1, &format!("b{i}")).is_ok()));
}

#[test]
fn other_runs_numbers_have_no_peer_here() {
    let tokens = Tokens::new(MAX_PEERS, MAX_PEERS).unwrap();
    let peers = vec![peer(true, 5, 1), peer(true, 6, 1)];
    let group = Group::new(Peers::new(5, peers, tokens, Lives::new().unwrap()));
    let numbers: Vec<_> = group.peers.table.all().iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [5, 6]);
    assert!(group.peers.get(4).is_err() && group.peers.must_end(4) && !group.peers.must_end(5));
    group.peers.end(4);
    group.peers.end(6);
    assert!(group.peers.must_end(6) && !group.peers.must_end(5));
}

#[test]
fn a_bound_peer_that_dies_ends_its_owner_with_its_status() {
    // Peer 0 is the family's first, 1 is spawned, and 2 is bound to 1.
    let end = |parting: Parting, release: bool, owner_generation: u32| {
        let group = group(4, true);
        let make = |number: usize, generation, bound| {
            group.peers.table.release(number);
            let (number, _) = group.peers.table.reserve(0, 0).unwrap();
            let made = Arc::new(Peer { bound, ..peer(true, 0, generation) });
            assert!(group.peers.table.occupy(number, made));
        };
        make(1, 3, None);
        make(2, 1, Some((1, 3)));
        if release {
            assert_eq!(group.end(1, 2, 1), Ok(0));
        }
        if owner_generation != 3 {
            make(1, owner_generation, None);
        }
        group.remove(2, PEER_DEAD, parting);
        assert!(!group.peers.must_end(0));
        let owner = group.peers.get(1).unwrap();
        assert_eq!(owner.bond.ended_by().is_some(), group.peers.must_end(1));
        owner.bond.ended_by()
    };
    assert_eq!(end(Parting::Whole, false, 3), None);
    assert_eq!(end(Parting::Exited(0), false, 3), Some(0));
    assert_eq!(end(Parting::Exited(7), false, 3), Some(7));
    assert_eq!(end(Parting::Died(101), false, 3), Some(101));
    // Killed by the host's user, or without a region that it lost.
    assert_eq!(end(Parting::Stopped, false, 3), Some(STATUS_CRASH as u8));
    // Ended by its family, which takes the memory for whole.
    assert_eq!(end(Parting::Stopped, true, 3), None);
    // Another peer has the owner's number.
    assert_eq!(end(Parting::Died(101), false, 4), None);
}
