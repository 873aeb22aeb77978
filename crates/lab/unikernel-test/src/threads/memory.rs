//! What threads share, and what each has for itself.

use super::{wait, COUNT, WORDS};
use alloc::{format, vec, vec::Vec};
use core::arch::asm;
use core::sync::atomic::Ordering;
use kyozon_abi::unikernel::*;
use kyozon_unikernel::block::{Disk, SECTOR};
use kyozon_unikernel::region::{self, PeerState};
use kyozon_unikernel::thread;
use kyozon_unikernel::vm::with_member;
use kyozon_unikernel::{boot, me, Error};

kyozon_unikernel::private! {
    /// A word that each machine has for itself.
    static MINE: u64 = 40;
}

/// Statics, the heap and stacks are the same memory at the same addresses.
pub fn shared() {
    static mut TABLE: [u64; 1000] = [1; 1000];
    let mut local = vec![7_u64; 100];
    let (on_stack, on_heap) = (&raw mut local as u64, local.as_mut_ptr() as u64);
    let table = &raw mut TABLE as u64;
    let child = thread::spawn(move || {
        // SAFETY: the first thread waits for this one, and touches nothing meanwhile.
        unsafe {
            assert!((*(table as *const [u64; 1000])).iter().all(|word| *word == 1));
            (*(table as *mut [u64; 1000]))[999] = 2;
            *(on_heap as *mut u64) = 8;
            (*(on_stack as *mut Vec<u64>)).push(9);
        }
        let here = 5_u64;
        assert!(&raw const here as u64 >= boot().heap.base, "its stack lies in the heap");
        assert_eq!(boot().stack.base % 4096, 0);
        vec![1, 2, 3]
    });
    assert_eq!(child.join().unwrap(), [1, 2, 3]);
    assert_eq!((local[0], local[100], local.len()), (8, 9, 101));
    // SAFETY: the other thread has ended.
    assert_eq!(unsafe { (table as *const u64).add(999).read_volatile() }, 2);
}

/// Private statics and thread-local data begin as in the image, in each machine.
pub fn private() {
    MINE.set(MINE.get() + 2);
    // SAFETY: a mapped word behind the thread pointer, which nothing uses here.
    unsafe { asm!("mov qword ptr fs:[16], 77", options(nostack)) };
    let work = || {
        let before = MINE.replace(99);
        let (thread, word): (u64, u64);
        // SAFETY: words at and behind the thread pointer are mapped.
        unsafe {
            asm!("mov {}, fs:[0]", "mov {}, fs:[16]", out(reg) thread, out(reg) word, options(nostack))
        };
        (before, thread, word, MINE.get())
    };
    for _ in 0..3 {
        assert_eq!(thread::spawn(work).join(), Ok((40, boot().thread, 0, 99)));
    }
    assert_eq!(MINE.get(), 42);
}

/// Allocations of several machines at once.
pub fn heap() {
    let work = |seed: u64| {
        let mut state = seed;
        let mut all: Vec<Vec<u64>> = Vec::new();
        for _ in 0..3000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let size = (state >> 33) as usize % 500;
            match all.len() {
                50.. => drop(all.swap_remove(size % 50)),
                _ => all.push(vec![seed; size]),
            }
        }
        assert!(all.iter().flatten().all(|word| *word == seed));
    };
    thread::scope(|scope| {
        for seed in 1..4 {
            scope.spawn(move || work(seed));
        }
        work(9);
    });
}

/// Machines return the free pieces that they keep: when they end, also at the same time, and when the heap is full.
pub fn heap_back() {
    for round in 0..30_u8 {
        let outer = thread::spawn(move || {
            thread::scope(|scope| {
                scope.spawn(|| {
                    drop((1..60).map(|size| vec![round; 30 * size]).collect::<Vec<_>>());
                });
            });
        });
        outer.join().unwrap();
    }
    // The whole heap in small pieces; the piece that is freed first, and kept, lies in the middle.
    let mut all: Vec<Vec<u8>> = Vec::new();
    loop {
        let mut piece = Vec::new();
        if piece.try_reserve_exact(2000).is_err() || all.try_reserve(1).is_err() {
            break;
        }
        all.push(piece);
    }
    assert!(all.len() > 10_000, "{}", all.len());
    drop(all.swap_remove(all.len() / 2));
    drop(all);
    let mut large: Vec<u8> = Vec::new();
    large.try_reserve_exact(boot().heap.bytes as usize / 10 * 9).unwrap();
}

/// Threads take the same lock by turns.
pub fn locks() {
    thread::scope(|scope| {
        for number in 0..3 {
            scope.spawn(move || {
                for i in 0..200 {
                    with_member(|me| {
                        let mut words = WORDS.lock(me, None).unwrap();
                        words.push(format!("{number}:{i}"));
                        COUNT.store(COUNT.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    });
                }
            });
        }
    });
    assert_eq!(COUNT.load(Ordering::Relaxed), 600);
    assert_eq!(with_member(|me| WORDS.lock(me, None).unwrap().len()), 600);
}

/// A thread has the regions of the guest that spawned it.
pub fn regions() {
    let board = region::find("board").expect("kyozon run --region name=board,size=1M");
    board.words().unwrap().at(5).store(6, Ordering::Release);
    let child = thread::spawn(|| {
        let board = region::find("board").unwrap();
        assert!(region::find("read").unwrap().words().is_err());
        let seen = board.words().unwrap().at(5).swap(7, Ordering::AcqRel);
        (me(), seen, board.peer(me()))
    });
    let (number, seen, state) = child.join().unwrap();
    assert_eq!((seen, state), (6, (PeerState::Present, 1)));
    assert_eq!(board.load(5), Some(7));
    wait("its leave", || board.peer(number).0 == PeerState::Left);
}

/// Devices belong to the guest that was there at the start, which uses them while its threads run.
pub fn devices() {
    let mut disk = Disk::open("disk").unwrap();
    let thread = thread::spawn(|| {
        let asked = crate::hostile::ask(ASK_QUEUE_STOP, [0; 6]);
        (Disk::open("disk").err(), asked)
    });
    disk.write(0, &[7; SECTOR]).unwrap();
    assert_eq!(thread.join(), Ok((Some(Error::Name), ERROR_NAME)));
    let mut back = [0; SECTOR];
    disk.read(0, &mut back).unwrap();
    assert_eq!(back, [7; SECTOR]);
}
