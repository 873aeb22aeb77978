//! Cases of threads in a group that several commands share. The guests use the group's numbers and its region `board`.

use crate::meet::{seat, LOCK};
use crate::peers::board;
use crate::Case;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use kyozon_channel::park::{Park, Peers};
use kyozon_channel::sync::{Acquired, RawMutex};
use kyozon_unikernel::region::{PeerState, Region, Rights};
use kyozon_unikernel::thread::{self, Builder};
use kyozon_unikernel::{arguments, boot, clock, me, println, sleep, Error};

pub const CASES: &[Case] = &[
    ("crowd", crowd),
    ("crowd-room", room),
    ("crowd-hold", hold),
    ("crowd-storm", storm),
    ("crowd-revoked", revoked),
    ("crowd-ends", || drop(thread::spawn(|| sleep::sleep(Duration::from_millis(300))).join())),
];

/// Words of the board: whether all numbers are taken, and the threads' counter.
const FULL: usize = 2;
const COUNT: usize = 1;

/// Sleeps until a condition holds, for at most twenty seconds.
fn wait(what: &str, mut holds: impl FnMut() -> bool) {
    let end = clock::now() + 20_000_000_000;
    while !holds() {
        assert!(clock::now() < end, "{what} did not come");
        sleep::park(Some(clock::now() + 5_000_000));
    }
}

fn number(index: usize) -> u64 {
    arguments::strings().nth(index).and_then(|word| word.parse().ok()).expect("a number")
}

fn forever() {
    loop {
        sleep::park(None);
    }
}

/// Starts as many threads as possible, which stay.
fn crowd() {
    let mut threads = Vec::new();
    let error = loop {
        match Builder::new().spawn(forever) {
            Ok(thread) => threads.push(thread),
            Err(error) => break error,
        }
    };
    assert!(threads.len() < boot().limit as usize);
    board().words().unwrap().at(FULL).store(1, Ordering::Release);
    println!("crowd: {} threads, then: {error}", threads.len());
    forever();
}

/// There is no room for a thread until another command's threads are gone.
fn room() {
    wait("a crowd", || board().load(FULL) == Some(1));
    assert_eq!(Builder::new().spawn(|| ()).map(drop), Err(Error::Full));
    println!("crowd-room: none");
    let mut room = None;
    wait("room", || {
        room = Builder::new().spawn(me).ok();
        room.is_some()
    });
    assert!(room.is_some_and(|thread| thread.peer().number() != me() as u8));
}

/// A thread takes a lock that guests of other commands want, and keeps it.
fn hold() {
    let thread = thread::spawn(|| {
        let (seat, region) = seat();
        let lock = region.get::<RawMutex>(LOCK).unwrap();
        assert_eq!(lock.lock(&seat, None), Ok(Acquired::Clean));
        println!("crowd-hold: peer {} holds it", me());
        forever();
    });
    println!("crowd-hold: {:?}", thread.join());
}

/// Several commands start more threads than there is room for. Some count under a lock that all share; some are ended
/// at whatever step they are.
fn storm() {
    let (commands, count) = (number(1), number(2));
    let word = board().words().unwrap().at(COUNT);
    let work = || {
        let (seat, region) = seat();
        let word = seat.words().unwrap().at(COUNT);
        assert!(seat.alive(seat.me()), "a peer is present before it runs");
        let lock = region.get::<RawMutex>(LOCK).unwrap();
        assert_eq!(lock.lock(&seat, None), Ok(Acquired::Clean));
        word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        lock.unlock(&seat, Acquired::Clean);
    };
    let made = AtomicU64::new(0);
    while made.load(Ordering::Relaxed) < count {
        thread::scope(|scope| {
            for _ in 0..3 {
                match Builder::new().spawn_scoped(scope, work) {
                    Ok(_) => drop(made.fetch_add(1, Ordering::Relaxed)),
                    Err(error) => assert_eq!(error, Error::Full),
                }
            }
            if let Ok(thread) = Builder::new().spawn(forever) {
                thread.end();
            }
        });
    }
    // Other commands may count a few more.
    wait("the others", || word.load(Ordering::Relaxed) >= commands * count);
}

/// A region is granted to a peer, which spawns a thread. Revoking it takes it from both.
fn revoked() {
    let count = |word: usize| {
        let mapped = Region::open("x").unwrap().map(Rights::Write).unwrap();
        loop {
            mapped.words().unwrap().at(word).fetch_add(1, Ordering::Release);
        }
    };
    board().region().rendezvous(2, None).unwrap();
    if me() == 1 {
        wait("a grant", || Region::open("x").is_ok());
        Region::open("x").unwrap().map(Rights::Write).unwrap();
        drop(thread::spawn(move || count(2)));
        count(1);
    }
    let made = Region::create("x", 8192, None).unwrap();
    let mapped = made.map(Rights::Write).unwrap();
    made.grant(1, Rights::Write).unwrap();
    let words = || [1, 2].map(|word| mapped.load(word).unwrap_or(0));
    wait("both", || words().iter().all(|word| *word > 1000));
    assert_eq!([1, 2].map(|peer| mapped.peer(peer)), [(PeerState::Present, 1); 2]);
    made.revoke(1).unwrap();
    let seen = words();
    assert_eq!([1, 2].map(|peer| mapped.peer(peer)), [(PeerState::Dead, 1); 2]);
    sleep::sleep(Duration::from_millis(50));
    assert_eq!(words(), seen);
}
