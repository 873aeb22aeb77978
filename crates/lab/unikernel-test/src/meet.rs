//! Cases of guests of different commands, and of host programs. They use the channel's rings and lock in the region
//! `board`.

use crate::peers::board;
use crate::Case;
use core::sync::atomic::Ordering;
use core::time::Duration;
use kyozon_channel::border::Region;
use kyozon_channel::error::Error;
use kyozon_channel::spsc::{Reader, Writer};
use kyozon_channel::sync::{Acquired, RawMutex};
use kyozon_unikernel::region::{Mapped, PeerState, Region as RegionOf, Rights};
use kyozon_unikernel::vm::Vm;
use kyozon_unikernel::{arguments, clock, println, sleep};

pub const CASES: &[Case] = &[
    ("echo", echo),
    ("ask", ask),
    ("see-end", see_end),
    ("lock", lock),
    ("lock-keep", lock_keep),
    ("lock-want", lock_want),
    ("read-only", read_only),
    ("lend", lend),
];

/// Offsets of the rings and the lock in the board's data. tests/unikernel/host/program.c has the same numbers.
const THERE: usize = 0;
const BACK: usize = 8192;
const RING: usize = 4096;
pub const LOCK: usize = 65536;

/// The board, as the group of the primitives in it, and as their memory.
pub fn seat() -> (Mapped, Region<'static>) {
    let board = board();
    assert_eq!(board.rights(), Rights::Write);
    // SAFETY: mapped as long as the guest lives, and accessed only by the channel.
    let region = unsafe { Region::new(board.data(), board.bytes()) };
    (board, region)
}

/// Sends every record back, until the other side ends.
fn echo() {
    let (seat, region) = seat();
    let (control, data) = region.spsc(THERE, RING).unwrap();
    let mut reader = Reader::attach(control, data, &seat).unwrap();
    let (control, data) = region.spsc(BACK, RING).unwrap();
    let mut writer = Writer::attach(control, data, &seat).unwrap();
    let mut buffer = [0; 2048];
    let mut count = 0_u64;
    let end = loop {
        let sent = reader
            .recv(&mut buffer, &seat, None)
            .and_then(|bytes| writer.send(&buffer[..bytes], &seat, None));
        match sent {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
    };
    println!("echo: {} records, {end:?}", if count == 0 { "no" } else { "some" });
}

/// Sends records, and expects them back.
fn ask() {
    let (seat, region) = seat();
    let (control, data) = region.spsc(THERE, RING).unwrap();
    let mut writer = Writer::attach(control, data, &seat).unwrap();
    let (control, data) = region.spsc(BACK, RING).unwrap();
    let mut reader = Reader::attach(control, data, &seat).unwrap();
    let mut buffer = [0; 2048];
    for i in 0..500_usize {
        let record = [i as u8; 2048];
        let record = &record[..i * 7 % 2000];
        writer.send(record, &seat, Some(clock::now() + 20_000_000_000)).unwrap();
        let bytes = reader.recv(&mut buffer, &seat, Some(clock::now() + 20_000_000_000)).unwrap();
        assert_eq!(&buffer[..bytes], record);
    }
    writer.close(&seat);
    // The other side ends without closing its ring.
    assert_eq!(reader.recv(&mut buffer, &seat, None), Err(Error::PeerDied));
}

/// Waits until a peer is present, then until it is gone.
fn see_end() {
    let number = arguments::strings().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1);
    let board = board();
    while board.peer(number).0 == PeerState::Absent {
        sleep::park(Some(clock::now() + 10_000_000));
    }
    println!("peer {number} is here");
    while board.peer(number).0 == PeerState::Present {
        sleep::park(None);
    }
    println!("peer {number} is {:?}", board.peer(number).0);
}

/// Waits for a lock whose holder dies.
fn lock() {
    let (seat, region) = seat();
    let lock = region.get::<RawMutex>(LOCK).unwrap();
    // Until another peer holds it.
    while let Ok(how) = lock.lock(&seat, Some(clock::now() + 1_000_000)) {
        lock.unlock(&seat, how);
        sleep::sleep(Duration::from_millis(5));
    }
    println!("lock: another peer holds it");
    let how = lock.lock(&seat, None).unwrap();
    println!("lock: {how:?}");
    lock.unlock(&seat, Acquired::Clean);
}

/// Holds a lock for a while that another peer waits for. Nobody takes it in between.
fn lock_keep() {
    let (_, region) = seat();
    let lock = region.get::<RawMutex>(LOCK).unwrap();
    assert_eq!(lock.lock(&Vm, None), Ok(Acquired::Clean));
    println!("lock-keep: held");
    sleep::sleep(Duration::from_millis(800));
    assert!(lock.unlock(&Vm, Acquired::Clean), "another peer took the lock");
}

/// Gets a lock from a peer of another command that lives, when that releases it.
fn lock_want() {
    let (_, region) = seat();
    let lock = region.get::<RawMutex>(LOCK).unwrap();
    assert_eq!(lock.lock(&Vm, Some(clock::now() + 50_000_000)), Err(Error::TimedOut));
    assert_eq!(lock.lock(&Vm, Some(clock::now() + 20_000_000_000)), Ok(Acquired::Clean));
    lock.unlock(&Vm, Acquired::Clean);
}

/// Creates a region for a host program, peer 1, and revokes it while the program writes to it.
fn lend() {
    let board = board();
    while board.peer(1).0 != PeerState::Present {
        sleep::park(Some(clock::now() + 10_000_000));
    }
    let made = RegionOf::create("x", 1 << 20, None).unwrap();
    let mapped = made.map(Rights::Write).unwrap();
    made.grant(1, Rights::Write).unwrap();
    let word = mapped.words().unwrap().at(0);
    while word.load(Ordering::Acquire) < 1000 {
        sleep::park(Some(clock::now() + 1_000_000));
    }
    made.revoke(1).unwrap();
    let seen = word.load(Ordering::Acquire);
    assert_eq!(mapped.peer(1), (PeerState::Dead, 1));
    sleep::sleep(Duration::from_millis(50));
    assert_eq!(word.load(Ordering::Acquire), seen);
}

/// Reads a peer's word, and cannot write to the board.
fn read_only() {
    let board = board();
    assert_eq!(board.rights(), Rights::Read);
    assert!(board.words().is_err());
    while board.load(0) != Some(42) {
        sleep::park(Some(clock::now() + 10_000_000));
    }
    println!("read-only: 42");
    // SAFETY: none: the write must crash the guest.
    unsafe { board.data().write_volatile(1) };
}
