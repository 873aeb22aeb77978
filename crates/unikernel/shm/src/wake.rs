//! How long it takes until somebody is there: who waits for a permit, and who is not there yet.

use crate::exchange::Apart;
use crate::{deadline, place, Samples};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use kyozon_channel::park::Park;
use kyozon_channel::sync::Semaphore;
use kyozon_portable::machine;

#[derive(Default)]
struct Board {
    /// When the permit was given.
    stamp: Apart<AtomicU64>,
    given: Apart<Semaphore>,
    taken: Apart<Semaphore>,
}

/// From `Semaphore::release` to the return of `Semaphore::acquire`, this long after that was called, in microseconds:
/// a waiter looks for a while, and sleeps then.
pub fn measure(count: usize, pause: usize) -> Samples {
    let board = &*Box::<Board>::default();
    machine::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            place::take(1);
            let me = &machine::member();
            let mut samples = Vec::new();
            for _ in 0..count {
                if board.given.0.acquire(me, deadline()).is_err() {
                    break;
                }
                let now = machine::now();
                samples.push(now.saturating_sub(board.stamp.0.load(Ordering::Relaxed)).max(1));
                board.taken.0.release(me, 1);
            }
            samples
        });
        place::take(0);
        let me = &machine::member();
        for _ in 0..count {
            // Whoever looks at the clock does not sleep: a sleeper's wake-up is for who waits alone.
            let end = machine::now() + 1000 * pause as u64;
            while machine::now() < end {
                core::hint::spin_loop();
            }
            board.stamp.0.store(machine::now(), Ordering::Relaxed);
            board.given.0.release(me, 1);
            if board.taken.0.acquire(me, deadline()).is_err() {
                break;
            }
        }
        match waiter.join() {
            Ok(samples) if samples.len() == count => Ok(samples),
            _ => Err("the waiter was not woken"),
        }
    })
}

/// Until a token is given, of one who does not sleep: the caller.
pub fn token(count: usize, _: usize) -> Samples {
    let me = &machine::member();
    Ok(timed(count, || me.unpark(me.me().number())))
}

/// Until a sleep is over whose time had come before it began.
pub fn nap(count: usize, _: usize) -> Samples {
    let me = &machine::member();
    Ok(timed(count, || me.park(Some(0))))
}

fn timed(count: usize, what: impl Fn()) -> Vec<u64> {
    let one = |_| {
        let before = machine::now();
        what();
        (machine::now() - before).max(1)
    };
    (0..count).map(one).collect()
}

/// From the call that makes a thread to the thread's first instruction of its own.
pub fn spawn(count: usize, _: usize) -> Samples {
    place::take(0);
    let start = |_| {
        let before = machine::now();
        let first = machine::thread::scope(|scope| {
            let first = || {
                let first = machine::now();
                place::take(1);
                first
            };
            scope.spawn(first).join()
        });
        first.map(|first| first.saturating_sub(before).max(1)).map_err(|_| "a thread did not start")
    };
    (0..count).map(start).collect()
}
