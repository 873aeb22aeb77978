//! A round trip of a cache line: the lower bound of every other experiment.

use crate::exchange::Apart;
use crate::{pin, Error, Samples, TIMEOUT};
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};
use kyozon_portable::machine;

/// Round trips that a sample averages.
const TURNS: u64 = 1000;
/// Polls of a line between two readings of the clock.
const POLLS: u32 = 1 << 16;

#[derive(Default)]
struct Lines {
    there: Apart<AtomicU64>,
    back: Apart<AtomicU64>,
}

pub fn measure(count: usize, _: usize) -> Samples {
    let lines = &*Box::<Lines>::default();
    let turns = TURNS * count as u64;
    machine::thread::scope(|scope| {
        let other = scope.spawn(move || {
            pin::to_side(1);
            (1..=turns).all(|turn| {
                let came = wait(&lines.there.0, turn);
                lines.back.0.store(turn, Ordering::Release);
                came
            })
        });
        pin::to_side(0);
        let mut samples = alloc::vec::Vec::new();
        for sample in 0..count as u64 {
            let began = machine::now();
            for turn in 1..=TURNS {
                let turn = sample * TURNS + turn;
                lines.there.0.store(turn, Ordering::Release);
                if !wait(&lines.back.0, turn) {
                    return Err(Error::NoAnswer);
                }
            }
            samples.push((machine::now() - began).div_ceil(TURNS));
        }
        match other.join() {
            Ok(true) => Ok(samples),
            _ => Err(Error::NoAnswer),
        }
    })
}

/// Polls until a line has a value. Returns whether it came in time.
fn wait(line: &AtomicU64, value: u64) -> bool {
    let mut end = None;
    loop {
        for _ in 0..POLLS {
            if line.load(Ordering::Acquire) == value {
                return true;
            }
            core::hint::spin_loop();
        }
        let now = machine::now();
        if now > *end.get_or_insert(now + TIMEOUT) {
            return false;
        }
    }
}
