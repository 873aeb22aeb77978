//! Starting threads: one, many, as many as there can be.

use super::wait;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use kyozon_abi::unikernel::*;
use kyozon_channel::park::{Life, Park, Peers};
use kyozon_unikernel::thread::{self, Builder};
use kyozon_unikernel::vm::Vm;
use kyozon_unikernel::{boot, clock, me, peers, println, sleep, Error};

/// A thread has a result, and its number is used again.
pub fn one() {
    let before = clock::now();
    let thread = thread::spawn(|| (me(), boot().generation));
    let peer = thread.peer();
    let began = thread.began();
    assert!(began.is_none_or(|began| began > before && began < clock::now()));
    assert_eq!(thread.join(), Ok((usize::from(peer.number()), 1)));
    wait("its end", || Vm.life(peer.number()) == Life::Dead);
    assert!(!Vm.alive(peer));
    // Its number is used again, with the next generation.
    let next = thread::spawn(|| boot().generation);
    assert_eq!((next.peer().number(), next.peer().generation()), (peer.number(), 2));
    assert_eq!(next.join(), Ok(2));
}

/// A guest that cannot have threads gets an error.
pub fn none() {
    assert_eq!(boot().features & FEATURE_SPAWN, 0);
    assert_eq!(Builder::new().spawn(|| ()).err(), Some(Error::Unsupported));
}

pub fn scope() {
    let data: Vec<u64> = (0..1000).collect();
    let sum = AtomicU64::new(0);
    let parts = thread::scope(|scope| {
        let parts: Vec<_> =
            data.chunks(250).map(|part| scope.spawn(|| part.iter().sum::<u64>())).collect();
        scope.spawn(|| sum.fetch_add(1, Ordering::Relaxed));
        scope.spawn(|| {
            // This thread belongs to the scope, and outlives the thread that started it.
            scope.spawn(|| {
                sleep::sleep(Duration::from_millis(20));
                sum.fetch_add(2, Ordering::Relaxed)
            });
        });
        parts.into_iter().map(|part| part.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(parts.iter().sum::<u64>(), 499_500);
    assert_eq!(sum.load(Ordering::Relaxed), 3);
}

pub fn nested() {
    fn tree(depth: u32) -> u64 {
        if depth == 0 {
            return 1;
        }
        let child = thread::spawn(move || tree(depth - 1));
        child.join().unwrap() + 1
    }
    assert_eq!(tree(6), 7);
}

/// As many threads as there can be, then an error; twice.
pub fn limit() {
    let (limit, before) = (boot().limit as usize, peers());
    for _ in 0..2 {
        let go = AtomicBool::new(false);
        thread::scope(|scope| {
            let wait = || wait("the signal", || go.load(Ordering::Acquire));
            let made: Vec<_> = (before..limit).map(|_| scope.spawn(wait)).collect();
            let more = Builder::new().spawn(|| ()).map(drop);
            assert_eq!(more, Err(Error::Full));
            go.store(true, Ordering::Release);
            made.iter().for_each(|thread| sleep::unpark(thread.peer().number().into()));
        });
    }
}

/// Many threads, one after the other and side by side; some are never joined.
pub fn storm() {
    static DONE: AtomicU64 = AtomicU64::new(0);
    let mut handles = Vec::new();
    for i in 0..150 {
        let thread = thread::spawn(move || DONE.fetch_add(1, Ordering::SeqCst));
        match i % 3 {
            0 => drop(thread),
            1 => assert!(thread.join().unwrap() < 150),
            _ => handles.push(thread),
        }
        if handles.len() == 10 {
            handles.drain(..).for_each(|thread| assert!(thread.join().unwrap() < 150));
        }
    }
    wait("all of them", || DONE.load(Ordering::SeqCst) == 150);
    assert_eq!(Builder::new().stack_size(usize::MAX).spawn(|| ()).map(drop), Err(Error::Argument));
    assert_eq!(Builder::new().stack_size(1 << 40).spawn(|| ()).map(drop), Err(Error::Full));
}

/// Prints the time from the call to the first instruction, in microseconds: median, minimum and maximum of a hundred.
pub fn start() {
    let mut times: Vec<u64> = (0..100)
        .filter_map(|_| {
            let before = Vm.now();
            let thread = thread::spawn(|| ());
            let peer = thread.peer();
            while thread.began().is_none() {
                core::hint::spin_loop();
            }
            let began = thread.began();
            thread.join().unwrap();
            wait("its end", || !Vm.alive(peer));
            began.map(|began| (began - before) / 1000)
        })
        .collect();
    times.sort_unstable();
    if times.len() == 100 {
        println!("median {} us, min {}, max {}", times[50], times[0], times[99]);
    }
}
