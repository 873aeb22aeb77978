//! The keeper runs in a thread. The test plays the tenders.

use super::*;
use kyozon_abi::unikernel::*;
use kyozon_channel::park::{Life, Park, Peers};
use kyozon_join::clock::Clock;
use kyozon_join::host::PeerState;
use kyozon_join::message::{FromKeeper, Join, RegionInfo, RegionRequest, ToKeeper, VERSION};
use kyozon_join::place::Met;
use kyozon_join::socket::Socket;
use kyozon_join::{Error, Host, Rights};
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;

pub(super) const LIMIT: Duration = Duration::from_secs(10);

pub(super) struct Test {
    place: Place,
    keeper: Option<JoinHandle<()>>,
    folder: std::path::PathBuf,
}

impl Test {
    pub fn new(name: &str) -> (Self, Socket) {
        let folder = std::env::temp_dir().join(format!("kyozon-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let place = Place::at(&folder.join("kyozon"));
        let Met::Made { socket, listener, lock } = place.meet("g").unwrap() else {
            panic!("the group exists")
        };
        drop(lock);
        let keeper_place = place.clone();
        let keeper = std::thread::spawn(move || {
            let mut state = State::new("g").unwrap();
            serve(&keeper_place, &mut state, &listener).unwrap();
        });
        (Self { place, keeper: Some(keeper), folder }, socket)
    }

    pub fn connect(&self) -> Socket {
        self.place.connect("g").unwrap()
    }

    /// Checks that the keeper ends and leaves no files.
    pub fn end(mut self) {
        self.keeper.take().unwrap().join().unwrap();
        assert!(!self.place.base().exists());
        std::fs::remove_dir(&self.folder).unwrap();
    }
}

pub(super) fn wanted(name: &str, bytes: u64, write: bool) -> RegionRequest {
    RegionRequest { name: name.into(), bytes, at: None, write }
}

pub(super) fn join(peers: usize, regions: &[RegionRequest]) -> Join {
    Join {
        version: VERSION,
        image: "x".into(),
        backend: "kvm".into(),
        peers,
        memory: 1 << 20,
        spare: 1 << 30,
        threads: Some(MAX_PEERS),
        clock: Some(Clock::default()),
        regions: regions.to_vec(),
        group_memory: None,
        group_peers: None,
    }
}

/// Joins; returns the first peer's number, the regions and their descriptors.
pub(super) fn welcome(
    socket: &Socket,
    join: Join,
) -> Result<(usize, Vec<RegionInfo>, Vec<OwnedFd>), String> {
    socket.send(&ToKeeper::Join(join), &[]).unwrap();
    match socket.receive_within(LIMIT).unwrap() {
        (FromKeeper::Welcome { first, regions, .. }, mut fds) => {
            // The tokens and the table of peers come first.
            let files = fds.split_off(MAX_PEERS + 1);
            Ok((first, regions, files))
        }
        (FromKeeper::Refused(why), _) => Err(why),
        other => panic!("{other:?}"),
    }
}

pub(super) fn ask(socket: &Socket, ask: ToKeeper) -> i64 {
    socket.send(&ask, &[]).unwrap();
    answer(socket)
}

pub(super) fn answer(socket: &Socket) -> i64 {
    match socket.receive_within(LIMIT).unwrap().0 {
        FromKeeper::Answer { result, .. } => result,
        other => panic!("{other:?}"),
    }
}

pub(super) fn peer_state(header: &OwnedFd, peer: usize) -> (u32, u32) {
    let file = std::fs::File::from(header.try_clone().unwrap());
    let mut words = [0; 8];
    let at = std::mem::offset_of!(RegionHeader, peers) + peer * size_of::<RegionPeer>();
    file.read_exact_at(&mut words, at as u64).unwrap();
    let word = |at: usize| u32::from_le_bytes(words[at..at + 4].try_into().unwrap());
    (word(0), word(4))
}

pub(super) fn wait(what: &str, holds: impl Fn() -> bool) {
    let end = std::time::Instant::now() + LIMIT;
    while !holds() {
        assert!(std::time::Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn runs_share_a_region_and_see_deaths() {
    let (test, first) = Test::new("meet");
    let (zero, regions, files) =
        welcome(&first, join(1, &[wanted("board", 1 << 20, true)])).unwrap();
    assert_eq!((zero, regions[0].rights, regions[0].address), (0, 3, REGION_AUTO_BASE));
    let second = test.connect();
    let board = wanted("board", 1 << 20, false);
    let (one, again, readers) = welcome(&second, join(2, std::slice::from_ref(&board))).unwrap();
    assert_eq!((one, again[0].address, again[0].rights), (1, REGION_AUTO_BASE, REGION_READ));
    assert_eq!(peer_state(&files[0], 2), (PEER_PRESENT, 1));
    // A run with the right to read gets a descriptor that cannot write.
    let reader = std::fs::File::from(readers[0].try_clone().unwrap());
    assert!(reader.write_at(b"x", 4096).is_err());
    assert!(std::fs::File::from(files[0].try_clone().unwrap()).write_at(b"x", 4096).is_ok());
    let meet = |count| ToKeeper::Meet { id: 7, peer: 0, number: 0, count };
    assert_eq!((ask(&first, meet(3)), ask(&first, meet(65))), (3, ERROR_ARGUMENT));
    drop(second);
    wait("a death", || {
        peer_state(&files[0], 1) == (PEER_DEAD, 1) && peer_state(&files[0], 2) == (PEER_DEAD, 1)
    });
    // Numbers that no peer has had come first.
    let third = test.connect();
    assert_eq!(welcome(&third, join(1, std::slice::from_ref(&board))).unwrap().0, 3);
    third.send(&ToKeeper::Gone { peer: 3, state: PEER_LEFT }, &[]).unwrap();
    third.send(&ToKeeper::Leave, &[]).unwrap();
    assert!(matches!(third.receive::<FromKeeper>(), Err(Error::Gone)));
    assert_eq!(peer_state(&files[0], 3), (PEER_LEFT, 1));
    let fourth = test.connect();
    assert_eq!(welcome(&fourth, join(60, &[board])).unwrap().0, 4);
    drop(fourth);
    wait("deaths", || peer_state(&files[0], 63) == (PEER_DEAD, 1));
    let fifth = test.connect();
    assert_eq!(welcome(&fifth, join(1, &[wanted("board", 0, true)])).unwrap().0, 1);
    assert_eq!(peer_state(&files[0], 1), (PEER_PRESENT, 2));
    drop((first, fifth));
    test.end();
}

#[test]
fn a_region_is_granted_and_revoked_across_runs() {
    let (test, first) = Test::new("revoke");
    welcome(&first, join(1, &[])).unwrap();
    let second = test.connect();
    welcome(&second, join(1, &[])).unwrap();
    let create =
        |name: &str, bytes| ToKeeper::Create { id: 1, peer: 0, name: name.into(), bytes, at: None };
    assert_eq!(ask(&first, create("x", 8192)), 0);
    assert_eq!(ask(&first, create("x", 8192)), ERROR_EXISTS);
    assert_eq!(ask(&first, create("y", 1 << 30)), ERROR_FULL);
    let map = |rights| ToKeeper::Map { id: 2, peer: 1, number: 0, rights };
    let grant = |to, rights| ToKeeper::Grant { id: 3, peer: 0, number: 0, to, rights };
    assert_eq!(ask(&second, map(1)), ERROR_NAME);
    assert_eq!((ask(&first, grant(1, 3)), ask(&first, grant(2, 1))), (0, ERROR_NAME));
    assert_eq!(ask(&second, map(3)), 0);
    // A revocation waits for the other run, whose requests to map the region wait for the revocation.
    first.send(&grant(1, 1), &[]).unwrap();
    let (take, _) = second.receive_within::<FromKeeper>(LIMIT).unwrap();
    let FromKeeper::Take { serial, peer: 1, number: 0 } = take else { panic!("{take:?}") };
    second.send(&map(1), &[]).unwrap();
    assert!(!first.readable(Some(Duration::from_millis(50))).unwrap());
    assert!(!second.readable(Some(Duration::from_millis(50))).unwrap());
    second.send(&ToKeeper::Taken { serial: serial + 1 }, &[]).unwrap();
    second.send(&ToKeeper::Taken { serial }, &[]).unwrap();
    assert_eq!((answer(&first), answer(&second)), (0, 0));
    // A peer that dies in the meantime has lost the region, too.
    first.send(&grant(1, 0), &[]).unwrap();
    assert!(matches!(
        second.receive_within::<FromKeeper>(LIMIT).unwrap().0,
        FromKeeper::Take { .. }
    ));
    drop(second);
    assert_eq!(answer(&first), 0);
    // A run that makes a request for another run's peer is disconnected.
    let third = test.connect();
    welcome(&third, join(1, &[])).unwrap();
    third.send(&grant(1, 3), &[]).unwrap();
    assert!(matches!(third.receive::<FromKeeper>(), Err(Error::Gone)));
    drop(first);
    test.end();
}

#[test]
fn a_host_program_is_a_peer() {
    let (test, first) = Test::new("host");
    let none = Host::join_at(&test.place, "g", &[]).unwrap_err();
    assert_eq!(none.to_string(), "the group g has no guest yet: start one first");
    let (_, _, files) =
        welcome(&first, join(1, &[wanted("a", 1 << 20, true), wanted("b", 8192, true)])).unwrap();
    let regions = [("a", Rights::Write), ("b", Rights::Read)];
    let host = Host::join_at(&test.place, "g", &regions).unwrap();
    let (a, b) = (host.region("a").unwrap(), host.region("b").unwrap());
    assert_eq!((host.number(), a.address(), a.bytes()), (1, REGION_AUTO_BASE, (1 << 20) - 4096));
    assert!(host.region("c").is_none() && a.shared().is_ok() && b.shared().is_err());
    assert_eq!(
        (a.me().number(), a.me().generation(), a.life(0), a.life(2)),
        (1, 1, Life::Alive(1), Life::NotYet)
    );
    // The host program sees the guests' memory at the region's address.
    let word = a.shared().unwrap().get::<AtomicU64>(64).unwrap();
    word.store(77, std::sync::atomic::Ordering::SeqCst);
    let mut bytes = [0; 8];
    std::fs::File::from(files[0].try_clone().unwrap())
        .read_exact_at(&mut bytes, 4096 + 64)
        .unwrap();
    assert_eq!(u64::from_le_bytes(bytes), 77);
    // This process has already mapped something at that address.
    assert!(Host::join_at(&test.place, "g", &regions).is_err());
    host.unpark(1);
    host.unpark(64);
    host.park(None);
    let end = host.now() + 1_000_000;
    while host.now() < end {
        host.park(Some(end));
    }
    // A region that a guest grants later.
    assert!(host.map("x", Rights::Read).is_err());
    let create = ToKeeper::Create { id: 1, peer: 0, name: "x".into(), bytes: 8192, at: None };
    let grant = |rights| ToKeeper::Grant { id: 2, peer: 0, number: 2, to: 1, rights };
    assert_eq!((ask(&first, create), ask(&first, grant(REGION_READ))), (2, 0));
    assert!(host.map("x", Rights::Write).unwrap_err().to_string().contains("fewer rights"));
    let x = host.map("x", Rights::Read).unwrap();
    assert_eq!((x.peer(1), x.rights()), ((PeerState::Present, 1), Rights::Read));
    assert!(host.map("x", Rights::Read).is_err());
    // It leaves by itself; then another host program sees the guest die.
    drop((a, b, x));
    drop(host);
    wait("the host's end", || peer_state(&files[0], 1) == (PEER_LEFT, 1));
    let host = Host::join_at(&test.place, "g", &[("a", Rights::Read)]).unwrap();
    drop(first);
    let a = host.region("a").unwrap();
    wait("a death", || a.life(0) == Life::Dead);
    assert!(!host.is_over());
    drop(a);
    drop(host);
    test.end();
}

#[test]
fn refusals_are_one_line() {
    let (test, first) = Test::new("limits");
    let limits = Join { group_memory: Some(8 << 20), group_peers: Some(3), ..join(1, &[]) };
    let regions = [wanted("a", 1 << 20, true)];
    welcome(&first, Join { regions: regions.to_vec(), ..limits }).unwrap();
    let refusal = |join: Join| {
        let why = welcome(&test.connect(), join).unwrap_err();
        assert!(!why.contains('\n'));
        why
    };
    assert!(refusal(join(3, &[])).contains("has 1 peers of at most 3: 3 more do not fit"));
    assert!(refusal(Join { memory: 7 << 20, ..join(1, &[]) })
        .contains("may have 8M of memory: 2M are used, 7M more"));
    assert!(refusal(join(1, &[wanted("b", 6 << 20, true)])).contains("8M of memory"));
    assert!(refusal(join(1, &[wanted("a", 2 << 20, true)])).contains("has 1M, not 2M"));
    assert!(refusal(join(1, &[wanted("b", 0, true)])).contains("no region b"));
    assert!(refusal(join(1, &[regions[0].clone(), regions[0].clone()])).contains("named twice"));
    let elsewhere = RegionRequest { at: Some(REGION_BASE), ..regions[0].clone() };
    assert!(refusal(join(1, &[elsewhere])).contains("is at 0x6000000000, not 0x4000000000"));
    let overlap = RegionRequest { at: Some(REGION_AUTO_BASE), ..wanted("c", 8192, true) };
    assert!(refusal(join(1, &[overlap])).contains("overlaps"));
    assert!(refusal(Join { group_memory: Some(1 << 30), ..join(1, &[]) }).contains("8M, not 1G"));
    assert!(refusal(Join { group_peers: Some(4), ..join(1, &[]) }).contains("3, not 4"));
    assert!(refusal(Join { version: 0, ..join(1, &[]) }).contains("another version"));
    assert!(refusal(Join { peers: 0, ..join(1, &[]) }).contains("do not fit"));
    drop(first);
    test.end();
}

#[test]
fn observers_list_and_kill_peers() {
    let (test, first) = Test::new("kill");
    welcome(&first, join(2, &[wanted("a", 8192, false)])).unwrap();
    first.send(&ToKeeper::Started, &[]).unwrap();
    let observer = test.connect();
    wait("the start", || {
        observer.send(&ToKeeper::List, &[]).unwrap();
        let FromKeeper::List(list) = observer.receive_within(LIMIT).unwrap().0 else {
            panic!("no list")
        };
        assert_eq!((list.peers.len(), list.memory), (2, (2 << 20) + 8192));
        assert_eq!(list.peers[1].regions, [("a".to_owned(), "r".to_owned())]);
        list.peers[1].state == "running"
    });
    observer.send(&ToKeeper::Kill { peer: Some(9) }, &[]).unwrap();
    let refused = FromKeeper::Refused("the group g has no peer 9".into());
    assert_eq!(observer.receive_within::<FromKeeper>(LIMIT).unwrap().0, refused);
    observer.send(&ToKeeper::Kill { peer: Some(1) }, &[]).unwrap();
    assert_eq!(
        first.receive_within::<FromKeeper>(LIMIT).unwrap().0,
        FromKeeper::Stop { peer: Some(1) }
    );
    first.send(&ToKeeper::Gone { peer: 1, state: PEER_DEAD }, &[]).unwrap();
    assert_eq!(observer.receive_within::<FromKeeper>(LIMIT).unwrap().0, FromKeeper::Ended(1));
    observer.send(&ToKeeper::Kill { peer: None }, &[]).unwrap();
    assert_eq!(
        first.receive_within::<FromKeeper>(LIMIT).unwrap().0,
        FromKeeper::Stop { peer: None }
    );
    first.send(&ToKeeper::Leave, &[]).unwrap();
    // The group's folder is removed before the answer is sent.
    assert_eq!(observer.receive_within::<FromKeeper>(LIMIT).unwrap().0, FromKeeper::Ended(1));
    assert!(!test.place.base().exists());
    test.end();
}
