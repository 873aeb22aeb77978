//! Numbers there and back in shared memory: nothing is copied, two semaphores say whose turn it is, and a lock guards
//! the numbers.

use crate::numbers::{check, fill, raise, Numbers, NUMBERS};
use crate::{deadline, place, Samples};
use alloc::boxed::Box;
use kyozon_channel::border::{Mutex, TrustedGroup};
use kyozon_channel::sync::Semaphore;
use kyozon_portable::machine;

/// On cache lines of its own, two, as processors fetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

struct Board {
    numbers: Apart<Mutex<Numbers>>,
    there: Apart<Semaphore>,
    back: Apart<Semaphore>,
}

pub fn measure(count: usize, _: usize) -> Samples {
    let board = &*Box::new(Board {
        numbers: Apart(Mutex::new([0; NUMBERS])),
        there: Apart::default(),
        back: Apart::default(),
    });
    machine::thread::scope(|scope| {
        let other = scope.spawn(|| {
            place::take(1);
            let me = &machine::member();
            (0..count).all(|_| answer(board, me))
        });
        place::take(0);
        let me = &machine::member();
        let samples = (0..count as u32).map(|round| ask(board, round, me)).collect();
        match other.join() {
            Ok(true) => samples,
            _ => Err("the other side did not answer"),
        }
    })
}

fn ask<G: TrustedGroup>(board: &Board, round: u32, me: &G) -> Result<u64, &'static str> {
    let lock = || board.numbers.0.lock(me, deadline()).map_err(|_| "the lock is not to be had");
    let began = machine::now();
    fill(&mut *lock()?, round);
    board.there.0.release(me, 1);
    board.back.0.acquire(me, deadline()).map_err(|_| "no answer came")?;
    let right = check(&*lock()?, round);
    let took = machine::now() - began;
    right.then_some(took).ok_or("a number came back wrong")
}

fn answer<G: TrustedGroup>(board: &Board, me: &G) -> bool {
    if board.there.0.acquire(me, deadline()).is_err() {
        return false;
    }
    let Ok(mut numbers) = board.numbers.0.lock(me, deadline()) else { return false };
    raise(&mut numbers);
    drop(numbers);
    board.back.0.release(me, 1);
    true
}
