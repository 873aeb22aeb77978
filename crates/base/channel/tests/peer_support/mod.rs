//! Words and payload that let a test act before each access: write like a hostile peer, or die.
#![allow(dead_code)] // each test uses a part of it

use kyozon_channel::data::Data;
use kyozon_channel::word::Word;
use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::atomic::Ordering;

type Hook = Box<dyn FnMut(Option<&Hooked>)>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Calls `hook` before each step, that is each access of the calling thread, with the word if it accesses a word.
pub fn set_hook(hook: impl FnMut(Option<&Hooked>) + 'static) {
    HOOK.with(|it| *it.borrow_mut() = Some(Box::new(hook)));
}

pub fn clear_hook() {
    HOOK.with(|it| *it.borrow_mut() = None);
}

fn step(word: Option<&Hooked>) {
    STEPS.with(|steps| steps.set(steps.get() + 1));
    // The hook is taken out, so that its own accesses are not steps.
    if let Some(mut hook) = HOOK.with(|it| it.borrow_mut().take()) {
        hook(word);
        HOOK.with(|it| it.replace(Some(hook)));
    }
}

/// Returns the result of `call` and the number of its steps, at most `max`.
pub fn counted<T>(max: u64, call: impl FnOnce() -> T) -> (T, u64) {
    let before = STEPS.with(Cell::get);
    let result = call();
    let steps = STEPS.with(Cell::get) - before;
    assert!(steps <= max, "took {steps} steps");
    (result, steps)
}

struct Killed;

/// Runs `call` and kills it before step `at`, counted from 0. Returns its result if it finished before that step.
pub fn kill_at<T>(at: u64, call: impl FnOnce() -> T) -> Option<T> {
    let mut left = at;
    set_hook(move |_| match left {
        0 => resume_unwind(Box::new(Killed)),
        _ => left -= 1,
    });
    let result = catch_unwind(AssertUnwindSafe(call));
    clear_hook();
    result
        .map_err(|reason| reason.downcast::<Killed>().unwrap_or_else(|other| resume_unwind(other)))
        .ok()
}

/// A word.
#[derive(Debug, Default)]
pub struct Hooked(Cell<u64>);

impl Hooked {
    pub fn set(&self, value: u64) {
        self.0.set(value);
    }
    pub fn get(&self) -> u64 {
        self.0.get()
    }
    fn step(&self) -> u64 {
        step(Some(self));
        self.0.get()
    }
}

// SAFETY: an atomic word that a hostile peer also writes to.
unsafe impl Word for Hooked {
    fn load(&self, _: Ordering) -> u64 {
        self.step()
    }
    fn store(&self, value: u64, _: Ordering) {
        self.step();
        self.0.set(value);
    }
    fn replace(&self, current: u64, new: u64, _: Ordering) -> Result<u64, u64> {
        let old = self.step();
        if old != current {
            return Err(old);
        }
        self.0.set(new);
        Ok(old)
    }
    fn swap(&self, value: u64, _: Ordering) -> u64 {
        let old = self.step();
        self.0.replace(value);
        old
    }
    fn fetch_add(&self, value: u64, _: Ordering) -> u64 {
        let old = self.step();
        self.0.replace(old.wrapping_add(value))
    }
    fn fetch_or(&self, bits: u64, _: Ordering) -> u64 {
        let old = self.step();
        self.0.replace(old | bits)
    }
    fn fetch_and(&self, bits: u64, _: Ordering) -> u64 {
        let old = self.step();
        self.0.replace(old & bits)
    }
    fn fence(_: Ordering) {}
}

/// Payload. An access outside fails the test.
#[derive(Clone, Debug)]
pub struct Bytes(pub Rc<Vec<Cell<u8>>>);

impl Bytes {
    pub fn new(bytes: usize) -> Self {
        Self(Rc::new(vec![Cell::new(0); bytes]))
    }
    pub fn set_word(&self, at: usize, value: u64) {
        for (cell, byte) in self.0[at..at + 8].iter().zip(value.to_le_bytes()) {
            cell.set(byte);
        }
    }
}

impl Data for Bytes {
    fn bytes(&self) -> usize {
        self.0.len()
    }
    fn load_word(&self, at: usize) -> u64 {
        assert!(at.is_multiple_of(8));
        let mut bytes = [0; 8];
        self.read(at, &mut bytes);
        u64::from_le_bytes(bytes)
    }
    fn store_word(&self, at: usize, value: u64) {
        assert!(at.is_multiple_of(8));
        self.write(at, &value.to_le_bytes());
    }
    fn read(&self, at: usize, to: &mut [u8]) {
        step(None);
        let from = &self.0[at..at + to.len()];
        to.iter_mut().zip(from).for_each(|(byte, cell)| *byte = cell.get());
    }
    fn write(&self, at: usize, from: &[u8]) {
        step(None);
        let to = &self.0[at..at + from.len()];
        to.iter().zip(from).for_each(|(cell, byte)| cell.set(*byte));
    }
}

/// xorshift64*: the same numbers from the same seed.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 8) % limit
    }

    /// Numbers that are more likely to expose errors than arbitrary ones.
    pub fn nasty(&mut self, now: u64) -> u64 {
        match self.below(10) {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << self.below(64),
            3 => u64::MAX - self.below(16),
            4 => self.below(32),
            5 => (self.below(65) + 1) << 32 | self.below(3),
            6 => now ^ 1 << self.below(64),
            7 => now.wrapping_add(self.below(17)).wrapping_sub(8),
            8 => now.wrapping_add(8 * self.below(80)).wrapping_sub(320),
            _ => self.next(),
        }
    }
}

/// The number in `KYOZON_FUZZ_ROUNDS`, or else `default`.
pub fn rounds(default: u64) -> u64 {
    let rounds = std::env::var("KYOZON_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok());
    rounds.unwrap_or(default)
}
