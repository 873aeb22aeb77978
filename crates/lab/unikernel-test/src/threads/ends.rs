//! How threads end, and what others see of it.

use super::{wait, WORDS};
use alloc::{vec, vec::Vec};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use kyozon_channel::border::LockError;
use kyozon_channel::park::{Life, Peers};
use kyozon_unikernel::thread::{self, Ended};
use kyozon_unikernel::vm::{with_member, Vm};
use kyozon_unikernel::{boot, println, sleep};

/// The joiner receives the panic message.
pub fn panics() {
    let child = thread::spawn(|| -> u32 { panic!("no {}", "value") });
    let Err(Ended::Panicked(message)) = child.join() else { panic!("it had a result") };
    assert!(
        message.starts_with("no value, at ") && message.contains("threads/ends.rs:"),
        "{message}"
    );
}

/// A thread of a scope ends the thread that opened it, with the same status; the first thread ends the family.
pub fn scope_panics() {
    thread::scope(|scope| {
        let joined = scope.spawn(|| panic!("inside a scope")).join();
        println!("seen: {joined:?}");
    });
    println!("seen");
}

pub fn scope_crash() {
    thread::scope(|scope| {
        // SAFETY: none: the tender must stop this write.
        scope.spawn(|| unsafe { core::ptr::null_mut::<u8>().write_volatile(1) });
    });
    println!("seen");
}

/// As in a program of the host, the status is that of the thread, which exited, even if it is 0.
pub fn scope_exit() {
    thread::scope(|scope| {
        scope.spawn(|| kyozon_unikernel::exit(7));
        sleep::sleep(Duration::from_secs(100));
    });
    println!("seen");
}

/// A scope goes on if one of its threads is ended by another, or leaves.
pub fn scope_ended() {
    let number = AtomicU64::new(0);
    thread::scope(|scope| {
        let busy = scope.spawn(|| loop {
            number.fetch_add(1, Ordering::Relaxed);
        });
        wait("the busy one", || number.load(Ordering::Relaxed) > 100);
        // SAFETY: it has borrowed a number only.
        unsafe { busy.end() };
        assert_eq!(busy.join(), Err(Ended::Died));
        // SAFETY: it has borrowed a number only, and no thread borrows from it.
        let left = scope.spawn(|| -> u32 { unsafe { thread::leave() } });
        assert_eq!(left.join(), Err(Ended::Left));
    });
    assert!(number.load(Ordering::Relaxed) > 100);
}

/// What ends with a thread in a scope: the thread that opened it, and its other scopes, but not the one that spawned
/// that.
pub fn scope_nested() {
    static REACHED: AtomicU64 = AtomicU64::new(0);
    let outer = thread::spawn(|| {
        let word = AtomicU64::new(0);
        thread::scope(|scope| {
            scope.spawn(|| loop {
                word.fetch_add(1, Ordering::Relaxed);
            });
            scope.spawn(|| {
                thread::scope(|scope| {
                    scope.spawn(|| {
                        wait("the other one", || word.load(Ordering::Relaxed) > 10);
                        kyozon_unikernel::exit(9)
                    });
                });
                REACHED.store(1, Ordering::Relaxed);
            });
        });
        REACHED.store(2, Ordering::Relaxed);
    });
    let peer = outer.peer();
    assert_eq!(outer.join(), Err(Ended::Died));
    assert!(!Vm.alive(peer) && REACHED.load(Ordering::Relaxed) == 0);
}

pub fn crash() {
    let child = thread::spawn(|| {
        // SAFETY: none: the tender must stop this write.
        unsafe { core::ptr::null_mut::<u8>().write_volatile(1) };
    });
    assert_eq!(child.join(), Err(Ended::Died));
}

pub fn exit() {
    let child = thread::spawn(|| -> u32 { kyozon_unikernel::exit(9) });
    let peer = child.peer();
    assert_eq!(child.join(), Err(Ended::Died));
    assert_eq!(kyozon_unikernel::vm::Vm.life(peer.number()), Life::Dead);
}

/// A thread is ended while it computes, and while it sleeps.
pub fn end() {
    static RUNS: AtomicBool = AtomicBool::new(false);
    let busy = thread::spawn(|| loop {
        RUNS.store(true, Ordering::Relaxed);
        core::hint::spin_loop();
    });
    let asleep = thread::spawn(|| loop {
        sleep::park(None);
    });
    wait("the busy one", || RUNS.load(Ordering::Relaxed));
    busy.end();
    asleep.end();
    let (first, second) = (busy.peer(), asleep.peer());
    assert_eq!(
        (busy.join(), asleep.join()),
        (Err::<(), _>(Ended::Died), Err::<(), _>(Ended::Died))
    );
    assert!(!Vm.alive(first) && !Vm.alive(second));
}

/// A thread is ended at whatever step of its start it is.
pub fn end_at_once() {
    for i in 0..30 {
        let child = thread::spawn(move || sleep::sleep(Duration::from_secs(100)));
        for _ in 0..i * 1000 {
            core::hint::spin_loop();
        }
        child.end();
        assert_eq!(child.join(), Err(Ended::Died));
    }
}

/// If a machine dies inside the heap, nothing more can be allocated, and no thread waits for it.
pub fn heap_death() {
    let (stop, ready) = (AtomicBool::new(false), AtomicU64::new(0));
    let before = vec![1_u8; 100];
    let ended = thread::scope(|scope| {
        let busy = scope.spawn(|| loop {
            ready.fetch_add(1, Ordering::Relaxed);
            // Larger than the pieces that a machine keeps.
            drop(vec![2_u8; 4000]);
            if stop.load(Ordering::Relaxed) {
                break;
            }
        });
        wait("the busy one", || ready.load(Ordering::Relaxed) > 100);
        // SAFETY: it has borrowed atomics only.
        unsafe { busy.end() };
        busy.join()
    });
    assert_eq!(ended, Err(Ended::Died));
    // Whether it died inside is chance; in both cases this returns.
    let mut more: Vec<u8> = Vec::new();
    let _ = more.try_reserve_exact(5000);
    assert!(before.iter().all(|byte| *byte == 1));
    core::mem::forget((before, more));
}

pub fn poison() {
    let child = thread::spawn(|| {
        with_member(|me| {
            let _held = WORDS.lock(me, None).unwrap();
            panic!("with a lock");
        });
    });
    assert!(child.join().is_err());
    with_member(|me| assert!(matches!(WORDS.lock(me, None), Err(LockError::Poisoned(_)))));
}

/// A waiter dies, and its number gets another thread, which waits for nothing. A wake-up that goes there is not lost.
pub fn lost_wake() {
    with_member(|me| lost_wake_of(WORDS.lock(me, None).unwrap()));
}

fn lost_wake_of<T>(held: T) {
    let take = || with_member(|me| drop(WORDS.lock(me, None).unwrap()));
    let waiters = [thread::spawn(take), thread::spawn(take)];
    sleep::sleep(Duration::from_millis(100));
    let [first, second] = waiters;
    let gone = first.peer();
    first.end();
    assert_eq!(first.join(), Err(Ended::Died));
    let other = thread::spawn(|| loop {
        sleep::park(None);
    });
    assert_eq!(other.peer().number(), gone.number());
    // All wake because of the death, and sleep again.
    sleep::sleep(Duration::from_millis(100));
    drop(held);
    second.join().unwrap();
}

/// The page below a thread's stack is not mapped in that thread, although others have memory there.
pub fn guard() {
    let child = thread::spawn(|| {
        let below = boot().stack.base - 8;
        // SAFETY: none: the tender must stop this write.
        unsafe { (below as *mut u64).write_volatile(1) };
    });
    assert_eq!(child.join(), Err(Ended::Died));
}

/// A thread's stack overflows into its guard.
pub fn overflow() {
    drop(thread::spawn(|| recurse(1)).join());
}

#[inline(never)]
#[allow(unconditional_recursion)]
pub fn recurse(depth: u64) -> u64 {
    let mut frame = [depth; 64];
    core::hint::black_box(&mut frame);
    recurse(depth + 1) + frame[7]
}

/// The first thread ends before the others, which end with it, whatever they do.
pub fn orphans() {
    for i in 0..6 {
        let work = move || loop {
            if i % 2 == 0 {
                sleep::park(None);
            }
            core::hint::spin_loop();
        };
        drop(thread::spawn(work));
    }
}

/// No thread ends until the tender ends all.
pub fn endless() {
    thread::scope(|scope| {
        scope.spawn(|| loop {
            core::hint::spin_loop();
        });
        scope.spawn(|| loop {
            sleep::park(None);
        });
    });
}

/// Its group's user kills the thread.
pub fn killed() {
    let child = thread::spawn(|| loop {
        sleep::park(None);
    });
    assert_eq!(child.join(), Err::<(), _>(Ended::Died));
}

/// Threads of a scope do not outlive the thread that they borrow from, however that ends.
pub fn bound() {
    static WORD: AtomicU64 = AtomicU64::new(0);
    static SEEN: AtomicU64 = AtomicU64::new(0);
    static INNER: AtomicU64 = AtomicU64::new(u64::MAX);
    let outer = thread::spawn(|| {
        let mine = AtomicU64::new(0);
        thread::scope(|scope| {
            let inner = scope.spawn(|| loop {
                WORD.fetch_add(1, Ordering::Relaxed);
                SEEN.store(mine.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
            });
            INNER.store(inner.peer().word(), Ordering::Relaxed);
            wait("the inner one", || SEEN.load(Ordering::Relaxed) > 10);
            panic!("the outer one");
        });
    });
    assert!(matches!(outer.join(), Err(Ended::Panicked(_))));
    let last = WORD.load(Ordering::Relaxed);
    let inner = kyozon_channel::park::Peer::from_word(INNER.load(Ordering::Relaxed)).unwrap();
    assert!(!Vm.alive(inner), "the thread that borrowed is gone first");
    sleep::sleep(Duration::from_millis(20));
    assert_eq!(WORD.load(Ordering::Relaxed), last);
}

/// A thread from which no other thread borrows may end before the threads that it spawned.
pub fn grandchild() {
    static GO: AtomicBool = AtomicBool::new(false);
    static WENT: AtomicBool = AtomicBool::new(false);
    let child = thread::spawn(|| {
        drop(thread::spawn(|| {
            wait("the signal", || GO.load(Ordering::Acquire));
            WENT.store(true, Ordering::Release);
        }));
    });
    let peer = child.peer();
    child.join().unwrap();
    wait("its end", || !Vm.alive(peer));
    GO.store(true, Ordering::Release);
    wait("the grandchild", || WENT.load(Ordering::Acquire));
}
