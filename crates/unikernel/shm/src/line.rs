//! A cache line there and back: the floor of everything else.

use crate::exchange::Apart;
use crate::{place, Samples, PATIENCE};
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};
use kyozon_portable::machine;

/// Round trips of a sample, which is their average.
const TURNS: u64 = 1000;
/// Looks between two at the clock.
const LOOKS: u32 = 1 << 16;

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
            place::take(1);
            (1..=turns).all(|turn| {
                let came = wait(&lines.there.0, turn);
                lines.back.0.store(turn, Ordering::Release);
                came
            })
        });
        place::take(0);
        let mut samples = alloc::vec::Vec::new();
        for sample in 0..count as u64 {
            let began = machine::now();
            for turn in 1..=TURNS {
                let turn = sample * TURNS + turn;
                lines.there.0.store(turn, Ordering::Release);
                if !wait(&lines.back.0, turn) {
                    return Err("no answer came");
                }
            }
            samples.push((machine::now() - began).div_ceil(TURNS));
        }
        match other.join() {
            Ok(true) => Ok(samples),
            _ => Err("the other side did not answer"),
        }
    })
}

/// Looks until a line has a value; whether it came in time.
fn wait(line: &AtomicU64, value: u64) -> bool {
    let mut end = None;
    loop {
        for _ in 0..LOOKS {
            if line.load(Ordering::Acquire) == value {
                return true;
            }
            core::hint::spin_loop();
        }
        let now = machine::now();
        if now > *end.get_or_insert(now + PATIENCE) {
            return false;
        }
    }
}
