//! Cases of several guests.

use crate::Case;
use core::sync::atomic::Ordering;
use core::time::Duration;
use kyozon_abi::unikernel::FEATURE_REGIONS;
use kyozon_unikernel::region::{self, Mapped, PeerState, Region, Rights};
use kyozon_unikernel::{arguments, boot, clock, me, peers, println, sleep, Error};

pub const CASES: &[Case] = &[
    ("ping-pong", ping_pong),
    ("death", death),
    ("leave", leave),
    ("regions", regions),
    ("revoked", revoked),
    ("rendezvous", rendezvous),
];

/// The region that every case of several guests has.
pub fn board() -> Mapped {
    region::find("board").expect("kyozon run --region name=board,size=1M")
}

/// The number of guests: the argument if different commands run them, otherwise the group's peers.
fn all() -> usize {
    arguments::strings().nth(1).and_then(|word| word.parse().ok()).unwrap_or(peers())
}

/// Sleeps until a condition holds, for at most ten seconds.
fn wait(what: &str, holds: impl Fn() -> bool) {
    let end = clock::now() + 10_000_000_000;
    while !holds() {
        assert!(clock::now() < end, "{what} did not come");
        sleep::park(Some(clock::now() + 50_000_000));
    }
}

/// Peers wake each other in a cycle, each asleep until its turn.
fn ping_pong() {
    board().region().rendezvous(all(), None).unwrap();
    let turn = board().words().unwrap().at(0);
    let (me, all) = (me() as u64, all() as u64);
    for round in 0..200 {
        let mine = round * all + me;
        while turn.load(Ordering::Acquire) != mine {
            sleep::park(None);
        }
        turn.store(mine + 1, Ordering::Release);
        sleep::unpark(((me + 1) % all) as usize);
    }
}

/// The last peer crashes. The others see that, even if they sleep without a deadline.
fn death() {
    let (board, last) = (board(), all() - 1);
    board.region().rendezvous(all(), None).unwrap();
    if me() == last {
        sleep::sleep(Duration::from_millis(50));
        // SAFETY: none: this crashes the guest.
        unsafe { core::ptr::null_mut::<u8>().write_volatile(0) };
    }
    while board.peer(last).0 == PeerState::Present {
        sleep::park(None);
    }
    assert_eq!(board.peer(last), (PeerState::Dead, 1));
}

/// The last peer leaves.
fn leave() {
    let (board, last) = (board(), all() - 1);
    board.region().rendezvous(all(), None).unwrap();
    if me() != last {
        wait("the last peer's end", || board.peer(last).0 != PeerState::Present);
        assert_eq!(board.peer(last), (PeerState::Left, 1));
        assert_eq!(board.peer(all()), (PeerState::Absent, 0));
    }
}

/// A region is granted with more and more rights, then revoked.
fn regions() {
    let board = board();
    let step = board.words().unwrap().at(0);
    board.region().rendezvous(2, None).unwrap();
    if boot().features & FEATURE_REGIONS == 0 {
        assert_eq!(Region::create("x", 8192, None), Err(Error::Unsupported));
        return;
    }
    if me() == 0 {
        let made = Region::create("x", 3 << 20, None).unwrap();
        assert_eq!(Region::create("x", 8192, None), Err(Error::Exists));
        let mapped = made.map(Rights::Write).unwrap();
        mapped.words().unwrap().at(100_000).store(42, Ordering::Relaxed);
        made.grant(1, Rights::Read).unwrap();
        step.store(1, Ordering::Release);
        sleep::unpark(1);
        assert_eq!(made.rendezvous(2, Some(clock::now() + 10_000_000_000)), Ok(2));
        wait("the reader", || step.load(Ordering::Acquire) == 2);
        // The right to write, then no right.
        made.grant(1, Rights::Write).unwrap();
        step.store(3, Ordering::Release);
        wait("the writer", || step.load(Ordering::Acquire) == 4);
        assert_eq!(mapped.load(7), Some(77));
        made.revoke(1).unwrap();
        assert_eq!(mapped.peer(1).0, PeerState::Dead);
        step.store(5, Ordering::Release);
        // SAFETY: no peer uses the region any more.
        unsafe { mapped.unmap() }.unwrap();
        assert_eq!(made.rendezvous(2, Some(0)), Ok(2));
    } else {
        wait("the grant", || step.load(Ordering::Acquire) == 1);
        assert_eq!(Region::open("y"), Err(Error::Name));
        let found = Region::open("x").unwrap();
        assert_eq!(found.map(Rights::Write).map(drop), Err(Error::Right));
        let mapped = found.map(Rights::Read).unwrap();
        assert_eq!(
            (mapped.load(100_000), mapped.load(0), mapped.load(1 << 40)),
            (Some(42), Some(0), None)
        );
        assert!(mapped.words().is_err());
        assert_eq!(found.grant(0, Rights::Read), Err(Error::Right));
        step.store(2, Ordering::Release);
        wait("the right to write", || step.load(Ordering::Acquire) == 3);
        let mapped = found.map(Rights::Write).unwrap();
        assert_eq!(mapped.load(100_000), Some(42));
        mapped.words().unwrap().at(7).store(77, Ordering::Release);
        step.store(4, Ordering::Release);
        wait("the end", || step.load(Ordering::Acquire) == 5);
        assert_eq!(found.map(Rights::Read).map(drop), Err(Error::Name));
        assert_eq!(Region::open("x"), Err(Error::Name));
    }
}

/// A peer uses a region while it is revoked.
fn revoked() {
    board().region().rendezvous(2, None).unwrap();
    let step = board().words().unwrap().at(0);
    if me() == 0 {
        let made = Region::create("x", 4 << 20, None).unwrap();
        made.map(Rights::Write).unwrap();
        made.grant(1, Rights::Write).unwrap();
        step.store(1, Ordering::Release);
        wait("the writer", || step.load(Ordering::Acquire) > 1000);
        made.revoke(1).unwrap();
        let seen = step.load(Ordering::Acquire);
        sleep::sleep(Duration::from_millis(50));
        // After revoke returned the other peer could not write; one increment may have been counted late.
        assert!(step.load(Ordering::Acquire) <= seen + 1);
    } else {
        wait("the grant", || step.load(Ordering::Acquire) == 1);
        let mapped = Region::open("x").unwrap().map(Rights::Write).unwrap();
        let words = mapped.words().unwrap();
        for i in 0.. {
            words.at(i % words.count()).fetch_add(1, Ordering::Relaxed);
            step.fetch_add(1, Ordering::Release);
        }
    }
}

fn rendezvous() {
    let board = board();
    let limit = boot().limit as usize;
    assert_eq!(board.region().rendezvous(limit + 1, None), Err(Error::Argument));
    assert_eq!(board.region().rendezvous(peers(), None), Ok(peers()));
    println!("peer {} met {}", me(), peers());
}
