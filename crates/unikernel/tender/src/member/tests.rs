//! The test plays the keeper of a run.

use super::*;
use crate::bond::Parting;
use crate::group::tests::peer;
use crate::group::Group;
use crate::layout::PAGE;
use crate::lives::Lives;
use crate::memory::{memory_file, shared_block};
use crate::tokens::Tokens;
use rustix::net::{socketpair, AddressFamily, SocketFlags, SocketType};
use std::sync::atomic::Ordering;
use std::sync::OnceLock;
use vmm_sys_util::eventfd::EventFd;

const LIMIT: Duration = Duration::from_secs(10);
const BYTES: u64 = 2 * PAGE;

/// A group with peer 3, which has mapped region 0, and the keeper's end of the socket.
fn group() -> (Arc<Group>, Socket) {
    let (ours, keepers) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let tokens = Tokens::new(MAX_PEERS, MAX_PEERS).unwrap();
    let mut group =
        Group::new(Peers::new(3, vec![peer(true, 3, 1)], tokens, Lives::new().unwrap()));
    let member = Member::new(ours.into());
    let block = shared_block(BYTES, memory_file(c"region", BYTES).unwrap(), true).unwrap();
    member
        .map_at_start(
            3,
            &group.peers.table.get(3).unwrap(),
            &region(REGION_WRITE | REGION_READ),
            &block,
        )
        .unwrap();
    group.member = Some(member);
    (Arc::new(group), keepers.into())
}

fn region(rights: u32) -> RegionInfo {
    RegionInfo { number: 0, name: "a".into(), address: REGION_AUTO_BASE, bytes: BYTES, rights }
}

/// The next message to the keeper.
fn received(keeper: &Socket) -> ToKeeper {
    keeper.receive_within(LIMIT).unwrap().0
}

/// Calls `work` while the run's thread serves the keeper's messages.
fn while_serving(group: &Group, work: impl FnOnce(&Member)) {
    let done = EventFd::new(0).unwrap();
    let member = group.member.as_ref().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| member.serve(&group.peers, &done));
        work(member);
        done.write(1).unwrap();
    });
}

/// Spawns a peer for peer 3; the keeper gives it this number.
fn spawn(group: &Group, keeper: &Socket, number: usize, generation: u32) -> Option<(usize, u32)> {
    std::thread::scope(|scope| {
        let spawned = scope.spawn(|| group.reserve(3, 4096));
        let ToKeeper::Spawn { id, peer: 3, memory: 4096 } = received(keeper) else {
            panic!("no spawn")
        };
        let regions = vec![region(REGION_READ | REGION_WRITE)];
        keeper.send(&FromKeeper::Seat { id, peer: number, generation, regions }, &[]).unwrap();
        spawned.join().unwrap()
    })
}

fn gone(number: usize, state: u32) -> ToKeeper {
    ToKeeper::Gone { peer: number, state }
}

/// The keeper takes region 0 from a peer, and waits until the run has unmapped it.
fn revoke(keeper: &Socket, number: usize) {
    keeper.send(&FromKeeper::Take { serial: 9, peer: number, number: 0 }, &[]).unwrap();
    assert_eq!(received(keeper), ToKeeper::Taken { serial: 9 });
}

const DATA: u64 = REGION_AUTO_BASE + PAGE;

#[test]
fn a_spawned_peer_has_the_keepers_number() {
    let (group, keeper) = group();
    while_serving(&group, |_| {
        assert_eq!(spawn(&group, &keeper, 7, 1), Some((7, 1)));
        let made = Arc::new(peer(true, 3, 1));
        group.inherit(3, 7, &made).unwrap();
        assert!(made.memory.write(DATA, &[5]).is_ok());
        assert_eq!(group.mapped_by(7), group.mapped_by(3));
        assert!(group.peers.table.occupy(7, made));
        assert!(!group.peers.must_end(7));
        group.remove(7, PEER_LEFT, Parting::Whole);
        assert_eq!(received(&keeper), gone(7, PEER_LEFT));
        assert_eq!((group.peers.table.life(7).state, group.mapped_by(7).len()), (PEER_LEFT, 0));
        // The run rings its own peers: the keeper may have rung them before the table changed.
        assert!(group.peers.tokens.get(3).unwrap().read().is_ok());
        // The number, another run's in the meantime, is this run's again.
        assert_eq!(spawn(&group, &keeper, 7, 2), Some((7, 2)));
        group.release(7);
        assert_eq!(received(&keeper), gone(7, PEER_DEAD));
        assert_eq!(group.peers.table.life(7).state, PEER_LEFT);
    });
}

#[test]
fn an_unfinished_peer_can_lose_a_region() {
    let (group, keeper) = group();
    while_serving(&group, |_| {
        // Before the peer has mapped it.
        spawn(&group, &keeper, 7, 1).unwrap();
        revoke(&keeper, 7);
        let made = Arc::new(peer(true, 3, 1));
        group.inherit(3, 7, &made).unwrap();
        assert!(made.memory.word(DATA).is_err() && group.mapped_by(7).is_empty());
        // After the peer has mapped it, but before it is in the table.
        spawn(&group, &keeper, 8, 1).unwrap();
        let made = Arc::new(peer(true, 3, 1));
        group.inherit(3, 8, &made).unwrap();
        assert!(made.memory.word(DATA).is_ok() && group.peers.table.get(8).is_none());
        revoke(&keeper, 8);
        assert!(made.memory.word(DATA).is_err());
        assert!(group.peers.table.get(3).unwrap().memory.word(DATA).is_ok());
        // A peer whose backend cannot unmap it must end.
        spawn(&group, &keeper, 9, 1).unwrap();
        let made = Arc::new(peer(false, 3, 1));
        group.inherit(3, 9, &made).unwrap();
        revoke(&keeper, 9);
        assert!(
            group.peers.table.occupy(9, made)
                && group.peers.must_end(9)
                && !group.peers.must_end(3)
        );
    });
}

#[test]
fn an_unfinished_peer_can_be_killed() {
    let (group, keeper) = group();
    while_serving(&group, |member| {
        spawn(&group, &keeper, 7, 1).unwrap();
        keeper.send(&FromKeeper::Stop { peer: Some(7) }, &[]).unwrap();
        // Messages are handled in order, so the peer is marked now.
        revoke(&keeper, 3);
        assert!(group.peers.table.occupy(7, Arc::new(peer(true, 3, 1))));
        assert!(group.peers.must_end(7) && !group.peers.must_end(3));
        // Only the end of a family's first peer counts as a killed run.
        assert!(!member.killed.load(Ordering::SeqCst));
        keeper.send(&FromKeeper::Stop { peer: Some(3) }, &[]).unwrap();
        revoke(&keeper, 3);
        assert!(group.peers.must_end(3) && member.killed.load(Ordering::SeqCst));
    });
}

#[test]
fn a_number_without_a_waiter_is_given_back() {
    let (group, keeper) = group();
    let late = OnceLock::new();
    while_serving(&group, |_| {
        std::thread::scope(|scope| {
            let spawned = scope.spawn(|| group.reserve(3, 4096));
            let ToKeeper::Spawn { id, .. } = received(&keeper) else { panic!("no spawn") };
            late.set(id).unwrap();
            group.stop();
            assert_eq!(spawned.join().unwrap(), None);
        });
        let spawned = FromKeeper::Seat {
            id: late.get().copied().unwrap(),
            peer: 7,
            generation: 1,
            regions: vec![],
        };
        keeper.send(&spawned, &[]).unwrap();
        assert_eq!(received(&keeper), gone(7, PEER_DEAD));
        assert!(group.peers.table.get_or_reserved(7).is_none());
    });
}

#[test]
fn only_the_parents_mappings_are_inherited() {
    let (group, keeper) = group();
    while_serving(&group, |member| {
        member.forget(3);
        spawn(&group, &keeper, 7, 1).unwrap();
        assert_eq!(received(&keeper), ToKeeper::Unmap { id: u64::MAX, peer: 7, number: 0 });
        let made = Arc::new(peer(true, 3, 1));
        group.inherit(3, 7, &made).unwrap();
        assert!(made.memory.word(DATA).is_err());
    });
}
