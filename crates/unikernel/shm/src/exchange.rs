//! A round trip of numbers in shared memory: nothing is copied, two semaphores pass the turn, and a lock guards the
//! numbers.

use crate::numbers::{check, fill, increment, Numbers, NUMBERS};
use crate::{deadline, pin, Error, Samples};
use alloc::boxed::Box;
use kyozon_channel::border::{Mutex, TrustedGroup};
use kyozon_channel::sync::Semaphore;
use kyozon_portable::machine;

/// A value on two cache lines of its own, as processors fetch lines in pairs.
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
            pin::to_side(1);
            machine::with_member(|me| (0..count).all(|_| answer(board, me)))
        });
        pin::to_side(0);
        let samples = machine::with_member(|me| {
            (0..count as u32).map(|round| ask(board, round, me)).collect()
        });
        match other.join() {
            Ok(true) => samples,
            _ => Err(Error::NoAnswer),
        }
    })
}

fn ask<G: TrustedGroup>(board: &Board, round: u32, me: &G) -> Result<u64, Error> {
    let lock = || board.numbers.0.lock(me, deadline()).map_err(|_| Error::Lock);
    let began = machine::now();
    fill(&mut *lock()?, round);
    board.there.0.release(me, 1);
    board.back.0.acquire(me, deadline()).map_err(|_| Error::NoAnswer)?;
    let right = check(&*lock()?, round);
    let took = machine::now() - began;
    right.then_some(took).ok_or(Error::WrongNumber)
}

fn answer<G: TrustedGroup>(board: &Board, me: &G) -> bool {
    if board.there.0.acquire(me, deadline()).is_err() {
        return false;
    }
    let Ok(mut numbers) = board.numbers.0.lock(me, deadline()) else { return false };
    increment(&mut numbers);
    drop(numbers);
    board.back.0.release(me, 1);
    true
}
