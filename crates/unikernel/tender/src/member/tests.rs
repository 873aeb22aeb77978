//! A run whose keeper is this test.

use super::*;
use crate::group::tests::peer;
use crate::group::Group;
use crate::layout::PAGE;
use crate::memory::{memory_file, shared_block};
use crate::tokens::Tokens;
use rustix::net::{socketpair, AddressFamily, SocketFlags, SocketType};
use std::sync::atomic::Ordering;
use std::sync::OnceLock;
use vmm_sys_util::eventfd::EventFd;

const LIMIT: Duration = Duration::from_secs(10);
const BYTES: u64 = 2 * PAGE;

/// A group with peer 3, which has the region 0 mapped, and its keeper's end.
fn group() -> (Arc<Group>, Socket) {
    let (ours, keepers) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let tokens = Tokens::new(MAX_PEERS, MAX_PEERS).unwrap();
    let mut group = Group::new(Peers::new(3, vec![peer(true, 3, 1)], tokens));
    let member = Member::new(ours.into());
    let block = shared_block(BYTES, memory_file(c"region", BYTES).unwrap(), true).unwrap();
    member
        .map_at_start(
            3,
            &group.peers.table.get(3).unwrap(),
            &known(REGION_WRITE | REGION_READ),
            &block,
        )
        .unwrap();
    group.member = Some(member);
    (Arc::new(group), keepers.into())
}

fn known(rights: u32) -> RegionInfo {
    RegionInfo { number: 0, name: "a".into(), address: REGION_AUTO_BASE, bytes: BYTES, rights }
}

/// The next thing that the keeper is asked.
fn asked(keeper: &Socket) -> ToKeeper {
    keeper.receive_within(LIMIT).unwrap().0
}

/// What follows happens while the run's thread for the keeper serves.
fn served(group: &Group, work: impl FnOnce(&Member)) {
    let done = EventFd::new(0).unwrap();
    let member = group.member.as_ref().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| member.serve(&group.peers, &done));
        work(member);
        done.write(1).unwrap();
    });
}

/// The keeper gives a number to the peer that 3 spawns.
fn seat(group: &Group, keeper: &Socket, number: usize) -> Option<(usize, u32)> {
    std::thread::scope(|scope| {
        let spawned = scope.spawn(|| group.reserve(3, 4096));
        let ToKeeper::Spawn { id, peer: 3, memory: 4096 } = asked(keeper) else {
            panic!("no spawn")
        };
        let regions = vec![known(REGION_READ | REGION_WRITE)];
        keeper.send(&FromKeeper::Seat { id, peer: number, regions }, &[]).unwrap();
        spawned.join().unwrap()
    })
}

fn gone(number: usize, state: u32) -> ToKeeper {
    ToKeeper::Gone { peer: number, state }
}

/// Has the keeper take the region from a peer, and waits until that is done.
fn take(keeper: &Socket, number: usize) {
    keeper.send(&FromKeeper::Take { serial: 9, peer: number, number: 0 }, &[]).unwrap();
    assert_eq!(asked(keeper), ToKeeper::Taken { serial: 9 });
}

const DATA: u64 = REGION_AUTO_BASE + PAGE;

#[test]
fn a_peer_comes_and_goes_under_the_keepers_number() {
    let (group, keeper) = group();
    served(&group, |_| {
        assert_eq!(seat(&group, &keeper, 7), Some((7, 1)));
        let made = Arc::new(peer(true, 3, 1));
        group.inherit(3, 7, &made).unwrap();
        assert!(made.memory.write(DATA, &[5]).is_ok());
        assert_eq!(group.mapped_by(7), group.mapped_by(3));
        assert!(group.peers.table.occupy(7, made));
        assert!(!group.peers.must_end(7));
        group.remove(7, PEER_LEFT);
        assert_eq!(asked(&keeper), gone(7, PEER_LEFT));
        assert_eq!((group.peers.table.life(7).state, group.mapped_by(7).len()), (PEER_LEFT, 0));
        // Those of this run are woken by it, as the keeper may have been faster.
        assert!(group.peers.tokens.get(3).unwrap().read().is_ok());
        // Of another run meanwhile, then its again.
        assert_eq!(seat(&group, &keeper, 7), Some((7, 2)));
        group.release(7);
        assert_eq!(asked(&keeper), gone(7, PEER_DEAD));
        assert_eq!(group.peers.table.life(7).state, PEER_LEFT);
    });
}

#[test]
fn what_is_taken_from_a_peer_in_the_making_is_gone() {
    let (group, keeper) = group();
    served(&group, |_| {
        // Before it has anything.
        seat(&group, &keeper, 7).unwrap();
        take(&keeper, 7);
        let made = Arc::new(peer(true, 3, 1));
        group.inherit(3, 7, &made).unwrap();
        assert!(made.memory.word(DATA).is_err() && group.mapped_by(7).is_empty());
        // When it has it, and is not yet what anybody sees.
        seat(&group, &keeper, 8).unwrap();
        let made = Arc::new(peer(true, 3, 1));
        group.inherit(3, 8, &made).unwrap();
        assert!(made.memory.word(DATA).is_ok() && group.peers.table.get(8).is_none());
        take(&keeper, 8);
        assert!(made.memory.word(DATA).is_err());
        assert!(group.peers.table.get(3).unwrap().memory.word(DATA).is_ok());
        // One that cannot lose it has to end.
        seat(&group, &keeper, 9).unwrap();
        let made = Arc::new(peer(false, 3, 1));
        group.inherit(3, 9, &made).unwrap();
        take(&keeper, 9);
        assert!(
            group.peers.table.occupy(9, made)
                && group.peers.must_end(9)
                && !group.peers.must_end(3)
        );
    });
}

#[test]
fn a_peer_in_the_making_can_be_killed() {
    let (group, keeper) = group();
    served(&group, |member| {
        seat(&group, &keeper, 7).unwrap();
        keeper.send(&FromKeeper::Stop { peer: Some(7) }, &[]).unwrap();
        // What was said before it is done.
        take(&keeper, 3);
        assert!(group.peers.table.occupy(7, Arc::new(peer(true, 3, 1))));
        assert!(group.peers.must_end(7) && !group.peers.must_end(3));
        // The run was not asked to end, until its first is.
        assert!(!member.killed.load(Ordering::SeqCst));
        keeper.send(&FromKeeper::Stop { peer: Some(3) }, &[]).unwrap();
        take(&keeper, 3);
        assert!(group.peers.must_end(3) && member.killed.load(Ordering::SeqCst));
    });
}

#[test]
fn a_number_that_nobody_waits_for_any_more_is_given_back() {
    let (group, keeper) = group();
    let late = OnceLock::new();
    served(&group, |_| {
        std::thread::scope(|scope| {
            let spawned = scope.spawn(|| group.reserve(3, 4096));
            let ToKeeper::Spawn { id, .. } = asked(&keeper) else { panic!("no spawn") };
            late.set(id).unwrap();
            group.stop();
            assert_eq!(spawned.join().unwrap(), None);
        });
        let seat = FromKeeper::Seat { id: late.get().copied().unwrap(), peer: 7, regions: vec![] };
        keeper.send(&seat, &[]).unwrap();
        assert_eq!(asked(&keeper), gone(7, PEER_DEAD));
        assert!(group.peers.table.get_or_reserved(7).is_none());
    });
}

#[test]
fn what_the_parent_could_not_map_is_not_inherited() {
    let (group, keeper) = group();
    served(&group, |member| {
        member.forget(3);
        seat(&group, &keeper, 7).unwrap();
        assert_eq!(asked(&keeper), ToKeeper::Unmap { id: u64::MAX, peer: 7, number: 0 });
        let made = Arc::new(peer(true, 3, 1));
        group.inherit(3, 7, &made).unwrap();
        assert!(made.memory.word(DATA).is_err());
    });
}
