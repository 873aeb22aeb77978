//! The test plays the keeper of a group.

use super::*;
use crate::place::Met;
use rustix::fs::{ftruncate, memfd_create, MemfdFlags};
use rustix::net::accept;
use std::fs::File;
use std::os::fd::AsFd;

/// Admits a host program to the group "g" as peer 1.
fn admit(place: &Place) -> (Host, Socket) {
    let Met::Made { listener, lock, socket } = place.meet("g").unwrap() else { panic!("exists") };
    drop((lock, socket));
    let first = accept(&listener).unwrap();
    std::thread::scope(|scope| {
        let keeper = scope.spawn(|| {
            let keeper = loop {
                match accept(&listener) {
                    Ok(socket) => break Socket::from(socket),
                    Err(_) => std::thread::sleep(Duration::from_millis(1)),
                }
            };
            keeper.receive_within::<ToKeeper>(TIMEOUT).unwrap();
            let lives = memfd_create(c"lives", MemfdFlags::CLOEXEC).unwrap();
            ftruncate(&lives, 4096).unwrap();
            let token = OwnedFd::from(File::open("/dev/null").unwrap());
            let mut all = vec![token.as_fd(); MAX_PEERS];
            all.push(lives.as_fd());
            let welcome = FromKeeper::Welcome {
                first: 1,
                generations: vec![7],
                peers: 2,
                limit: 64,
                clock: Clock::default(),
                regions: Vec::new(),
            };
            keeper.send(&welcome, &all).unwrap();
            keeper
        });
        let host = Host::join_at(place, "g", &[]).unwrap();
        drop(first);
        (host, keeper.join().unwrap())
    })
}

#[test]
fn only_the_end_of_the_connection_ends_the_group() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::at(&folder.path().join("kyozon"));
    let (host, keeper) = admit(&place);
    assert_eq!((host.number(), host.generation, host.is_over()), (1, 7, false));
    // Answers to requests that no longer wait. The keeper counts the region of one as mapped.
    let region = RegionInfo { number: 3, ..RegionInfo::default() };
    for region in [None, Some(region)] {
        keeper.send(&FromKeeper::Answer { id: 99, result: 0, region }, &[]).unwrap();
    }
    assert!(!host.is_over());
    let given_back = keeper.receive_within::<ToKeeper>(TIMEOUT).unwrap().0;
    assert!(matches!(given_back, ToKeeper::Unmap { peer: 1, number: 3, .. }), "{given_back:?}");
    keeper.send(&FromKeeper::Answer { id: 99, result: 0, region: None }, &[]).unwrap();
    host.park(Some(host.now() + 1_000_000));
    assert!(!host.is_over());
    drop(keeper);
    assert!(host.is_over());
}
