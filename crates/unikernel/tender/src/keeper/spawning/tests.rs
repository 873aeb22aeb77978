//! Spawned peers. The test plays the tenders.

use super::super::tests::*;
use super::super::*;
use crate::quota::peer_bytes;
use kyozon_abi::unikernel::*;
use kyozon_join::message::{FromKeeper, Join, PeerInfo, RegionInfo, ToKeeper};
use kyozon_join::socket::Socket;

/// Spawns a peer for `parent`; returns its number and regions, or `ERROR_*`.
fn spawn(socket: &Socket, parent: usize) -> Result<(usize, Vec<RegionInfo>), i64> {
    socket.send(&ToKeeper::Spawn { id: 5, peer: parent, memory: 4096 }, &[]).unwrap();
    match socket.receive_within(LIMIT).unwrap().0 {
        FromKeeper::Seat { id: 5, peer, regions, .. } => Ok((peer, regions)),
        FromKeeper::Answer { id: 5, result, .. } => Err(result),
        other => panic!("{other:?}"),
    }
}

fn number(socket: &Socket, parent: usize) -> Result<usize, i64> {
    spawn(socket, parent).map(|spawned| spawned.0)
}

fn gone(socket: &Socket, peer: usize, state: u32) {
    socket.send(&ToKeeper::Gone { peer, state }, &[]).unwrap();
}

fn seen(observer: &Socket) -> (Vec<PeerInfo>, u64) {
    observer.send(&ToKeeper::List, &[]).unwrap();
    match observer.receive_within(LIMIT).unwrap().0 {
        FromKeeper::List(list) => (list.peers, list.memory),
        other => panic!("{other:?}"),
    }
}

fn numbers(observer: &Socket) -> Vec<usize> {
    seen(observer).0.iter().map(|peer| peer.peer).collect()
}

#[test]
fn a_spawned_peer_is_like_any_other() {
    let (test, first) = Test::new("spawn");
    let (_, _, files) =
        welcome(&first, join(1, &[wanted("a", 8192, true), wanted("b", 8192, false)])).unwrap();
    let second = test.connect();
    welcome(&second, join(1, &[wanted("a", 8192, false)])).unwrap();
    // A region that the parent may map but has not mapped is not inherited.
    let create = ToKeeper::Create { id: 1, peer: 0, name: "x".into(), bytes: 8192, at: None };
    assert_eq!(ask(&first, create), 2);
    let (two, regions) = spawn(&first, 0).unwrap();
    let regions: Vec<_> = regions.iter().map(|r| (r.number, r.rights)).collect();
    assert_eq!((two, regions), (2, vec![(0, 3), (1, REGION_READ)]));
    assert_eq!(
        files.iter().map(|file| peer_state(file, 2)).collect::<Vec<_>>(),
        [(PEER_PRESENT, 1); 2]
    );
    // A spawned peer can be granted regions, and can spawn.
    let map = |peer| ToKeeper::Map { id: 2, peer, number: 2, rights: 1 };
    let grant = |to, rights| ToKeeper::Grant { id: 3, peer: 0, number: 2, to, rights };
    assert_eq!(ask(&first, map(2)), ERROR_NAME);
    assert_eq!((ask(&first, grant(2, 1)), ask(&first, map(2))), (0, 0));
    assert_eq!(ask(&second, ToKeeper::Meet { id: 7, peer: 1, number: 0, count: 3 }), 3);
    let (three, regions) = spawn(&first, 2).unwrap();
    assert_eq!((three, regions.len()), (3, 3));
    let observer = test.connect();
    let (peers, memory) = seen(&observer);
    // Spawned peers and the region that one of them created are in the memory of their family.
    assert_eq!(memory, (2 << 20) + 2 * 8192);
    assert_eq!(peers.iter().map(|p| p.memory).collect::<Vec<_>>(), [1 << 20, 1 << 20, 4096, 4096]);
    assert_eq!(
        peers[3].regions,
        ["a:rw", "b:r", "x:r"].map(|r| {
            let (name, rights) = r.split_once(':').unwrap();
            (name.to_owned(), rights.to_owned())
        })
    );
    // Its end is reported. The next spawned peer gets its number with the next generation.
    gone(&first, 2, PEER_LEFT);
    wait("an end", || numbers(&observer) == [0, 1, 3]);
    assert_eq!(peer_state(&files[0], 2), (PEER_LEFT, 1));
    assert_eq!((number(&second, 1), peer_state(&files[0], 2)), (Ok(2), (PEER_PRESENT, 2)));
    assert_eq!(peer_state(&files[1], 2), (PEER_LEFT, 1));
    // A run's spawned peers die with it.
    drop(first);
    wait("deaths", || {
        peer_state(&files[0], 0).0 == PEER_DEAD && peer_state(&files[0], 3) == (PEER_DEAD, 1)
    });
    wait("the list", || numbers(&observer) == [1, 2]);
    // A run that spawns for another run's peer is disconnected.
    second.send(&ToKeeper::Spawn { id: 5, peer: 0, memory: 0 }, &[]).unwrap();
    assert!(matches!(second.receive::<FromKeeper>(), Err(kyozon_join::Error::Gone)));
    drop(observer);
    test.end();
}

#[test]
fn limits_hold_for_spawned_and_joining_peers() {
    let (test, first) = Test::new("spawn-limits");
    let spare = 2 * peer_bytes(4096) - 1;
    let (group_memory, group_peers) = (Some((1 << 20) + 8191), Some(3));
    welcome(&first, Join { group_memory, group_peers, spare, ..join(1, &[]) }).unwrap();
    assert_eq!((number(&first, 0), number(&first, 0)), (Ok(1), Err(ERROR_FULL)));
    gone(&first, 1, PEER_DEAD);
    assert_eq!(number(&first, 0), Ok(1));
    let refused = welcome(&test.connect(), join(1, &[])).unwrap_err();
    assert_eq!(refused, "the group g may have 1031K of memory: 1M are used, 1M more do not fit");
    drop(first);
    test.end();
    let (test, first) = Test::new("spawn-peers");
    welcome(&first, Join { group_peers: Some(3), ..join(1, &[]) }).unwrap();
    let second = test.connect();
    welcome(&second, join(1, &[])).unwrap();
    assert_eq!((number(&second, 1), number(&first, 0)), (Ok(2), Err(ERROR_FULL)));
    drop(second);
    // Numbers of peers that joined come last.
    wait("a number", || number(&first, 0) == Ok(2));
    assert_eq!((number(&first, 0), number(&first, 0)), (Ok(3), Err(ERROR_FULL)));
    gone(&first, 2, PEER_DEAD);
    gone(&first, 3, PEER_DEAD);
    let third = test.connect();
    wait("ends", || numbers(&third) == [0]);
    // A run that joins gets numbers that no peer has had, as long as there are any.
    assert_eq!(welcome(&third, join(2, &[])).unwrap().0, 4);
    drop((first, third));
    test.end();
}

#[test]
fn a_family_has_half_of_a_group_by_default() {
    let (test, first) = Test::new("spawn-half");
    let group_peers = Some(6);
    welcome(&first, Join { group_peers, threads: None, ..join(1, &[]) }).unwrap();
    assert_eq!([(); 3].map(|()| number(&first, 0)), [Ok(1), Ok(2), Err(ERROR_FULL)]);
    let create = |name: String| ToKeeper::Create { id: 1, peer: 0, name, bytes: 8192, at: None };
    let half = MAX_REGIONS as i64 / 2;
    assert!((0..half).all(|i| ask(&first, create(format!("r{i}"))) == i));
    assert_eq!(ask(&first, create("more".into())), ERROR_FULL);
    let second = test.connect();
    assert_eq!(welcome(&second, join(3, &[wanted("b", 8192, true)])).unwrap().0, 3);
    drop((first, second));
    test.end();
}

#[test]
fn all_numbers_can_be_spawned_peers() {
    let (test, first) = Test::new("spawn-all");
    welcome(&first, join(1, &[])).unwrap();
    let second = test.connect();
    welcome(&second, join(1, &[])).unwrap();
    let mut numbers: Vec<_> = (2..64).map(|_| number(&first, 0).unwrap()).collect();
    assert_eq!(numbers, (2..64).collect::<Vec<_>>());
    assert_eq!(number(&second, 1), Err(ERROR_FULL));
    drop(second);
    // The number of a peer that joined is free again, but is given out last.
    gone(&first, 40, PEER_LEFT);
    numbers = vec![number(&first, 0).unwrap()];
    wait("the last number", || number(&first, 0) == Ok(1));
    assert_eq!((numbers, number(&first, 0)), (vec![40], Err(ERROR_FULL)));
    drop(first);
    test.end();
}

#[test]
fn a_family_loses_a_region_together() {
    let (test, first) = Test::new("spawn-revoke");
    welcome(&first, join(1, &[])).unwrap();
    let second = test.connect();
    welcome(&second, join(1, &[])).unwrap();
    let create = |peer, name: &str| ToKeeper::Create {
        id: 1,
        peer,
        name: name.into(),
        bytes: 8192,
        at: None,
    };
    assert_eq!(ask(&first, create(0, "x")), 0);
    let grant = |rights| ToKeeper::Grant { id: 3, peer: 0, number: 0, to: 1, rights };
    assert_eq!(ask(&first, grant(1)), 0);
    assert_eq!(ask(&second, ToKeeper::Map { id: 2, peer: 1, number: 0, rights: 1 }), 0);
    assert_eq!(spawn(&second, 1).unwrap().1.len(), 1);
    first.send(&grant(0), &[]).unwrap();
    let taken = || match second.receive_within::<FromKeeper>(LIMIT).unwrap().0 {
        FromKeeper::Take { serial, peer, number: 0 } => (serial, peer),
        other => panic!("{other:?}"),
    };
    let ((one, a), (two, b)) = (taken(), taken());
    assert_eq!((a, b), (1, 2));
    // A peer that ends while its request waits does not affect its run's other peers.
    second.send(&ToKeeper::Map { id: 4, peer: 2, number: 0, rights: 1 }, &[]).unwrap();
    gone(&second, 2, PEER_DEAD);
    second.send(&ToKeeper::Taken { serial: two }, &[]).unwrap();
    // A region that a peer is about to lose is not inherited, and the answer waits for the last peer.
    assert_eq!(spawn(&second, 1), Ok((2, vec![])));
    assert!(!first.readable(Some(Duration::from_millis(50))).unwrap());
    second.send(&ToKeeper::Taken { serial: one }, &[]).unwrap();
    assert_eq!(answer(&first), 0);
    assert_eq!(number(&second, 1), Ok(3));
    assert_eq!(ask(&second, ToKeeper::Map { id: 2, peer: 2, number: 0, rights: 1 }), ERROR_NAME);
    // A region that a spawned peer creates counts against its family's budget, and keeps no owner when the peer is
    // gone.
    assert_eq!(ask(&second, create(3, "y")), 1);
    let big = ToKeeper::Create { id: 1, peer: 1, name: "z".into(), bytes: 1 << 30, at: None };
    assert_eq!(ask(&second, big), ERROR_FULL);
    gone(&second, 3, PEER_LEFT);
    let why = || welcome(&test.connect(), join(1, &[wanted("y", 0, true)])).unwrap_err();
    wait("its end", || {
        why().contains("belongs to a peer that is gone, which did not grant it: use another name")
    });
    drop((first, second));
    test.end();
}

#[test]
fn a_thread_is_killed_alone_or_with_its_family() {
    let (test, first) = Test::new("spawn-kill");
    welcome(&first, join(2, &[])).unwrap();
    assert_eq!((number(&first, 0), number(&first, 2), number(&first, 1)), (Ok(2), Ok(3), Ok(4)));
    let killer = test.connect();
    let kill = |peer| {
        killer.send(&ToKeeper::Kill { peer }, &[]).unwrap();
        let (message, _) = first.receive_within::<FromKeeper>(LIMIT).unwrap();
        assert_eq!(message, FromKeeper::Stop { peer });
    };
    kill(Some(2));
    gone(&first, 2, PEER_DEAD);
    assert_eq!(killer.receive_within::<FromKeeper>(LIMIT).unwrap().0, FromKeeper::Ended(1));
    // A family ends with its first peer, and no peer can join it in the meantime.
    kill(Some(0));
    assert_eq!((number(&first, 3), number(&first, 1)), (Err(ERROR_FULL), Ok(2)));
    gone(&first, 0, PEER_DEAD);
    assert_eq!(number(&first, 3), Err(ERROR_FULL));
    assert!(!killer.readable(Some(Duration::from_millis(50))).unwrap());
    gone(&first, 3, PEER_DEAD);
    assert_eq!(killer.receive_within::<FromKeeper>(LIMIT).unwrap().0, FromKeeper::Ended(2));
    kill(None);
    assert_eq!(number(&first, 1), Err(ERROR_FULL));
    for peer in [1, 2, 4] {
        gone(&first, peer, PEER_DEAD);
    }
    first.send(&ToKeeper::Leave, &[]).unwrap();
    assert_eq!(killer.receive_within::<FromKeeper>(LIMIT).unwrap().0, FromKeeper::Ended(3));
    test.end();
}
