//! How long it takes to wake a waiter, to give a token, to sleep, and to start a thread.

use crate::exchange::Apart;
use crate::{deadline, pin, Error, Samples};
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

/// From `Semaphore::release` to the return of `Semaphore::acquire`. The release comes `pause` microseconds after the
/// acquire was called: a waiter polls for a while, and then sleeps.
pub fn measure(count: usize, pause: usize) -> Samples {
    let board = &*Box::<Board>::default();
    machine::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            pin::to_side(1);
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
        pin::to_side(0);
        let me = &machine::member();
        for _ in 0..count {
            // Polls the clock instead of sleeping, so that only the waiter's wake-up is measured.
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
            _ => Err(Error::NotWoken),
        }
    })
}

/// The call that gives a token to a peer that is awake: the caller.
pub fn token(count: usize, _: usize) -> Samples {
    let me = &machine::member();
    Ok(timed(count, || me.unpark(me.me().number())))
}

/// A sleep whose deadline has passed before it begins.
pub fn nap(count: usize, _: usize) -> Samples {
    let me = &machine::member();
    Ok(timed(count, || me.park(Some(0))))
}

fn timed(count: usize, work: impl Fn()) -> Vec<u64> {
    let one = |_| {
        let before = machine::now();
        work();
        (machine::now() - before).max(1)
    };
    (0..count).map(one).collect()
}

/// From the call that starts a thread to the first instruction of the thread's own code.
pub fn spawn(count: usize, _: usize) -> Samples {
    pin::to_side(0);
    let start = |_| {
        let before = machine::now();
        let first = machine::thread::scope(|scope| {
            let first = || {
                let first = machine::now();
                pin::to_side(1);
                first
            };
            scope.spawn(first).join()
        });
        first.map(|first| first.saturating_sub(before).max(1)).map_err(|_| Error::NoThread)
    };
    (0..count).map(start).collect()
}
