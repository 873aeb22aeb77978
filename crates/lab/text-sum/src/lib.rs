//! Sums pages of Linux's memory, and measures itself: one source for a task of the microkernel behind page tables
//! (`main.rs`) and for one in typed code (`program.rs`).
//!
//! The operator's parameter names the pages: the physical address of the first, plus four times their number, at most
//! 1023. Each of [`PASSES`] passes is one line of the event ring, with the sum and the instructions of the pass without
//! the waits for ticks.
#![cfg_attr(not(test), no_std)]

#[cfg(target_arch = "wasm32")]
mod program;

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Passes over all pages.
pub const PASSES: u32 = 3;
/// Pages between two waits for a tick.
const SLICE: u64 = 16;
/// Samples of a call.
const SAMPLES: u32 = 50;
/// The hash FNV-1a of 64 bits, with words for bytes: its first value, and its factor.
const FIRST: u64 = 0xcbf2_9ce4_8422_2325;
const FACTOR: u64 = 0x100_0000_01b3;

/// What the task needs of its kernel.
pub trait Kernel {
    /// The operator's parameter.
    fn parameter(&self) -> u64;
    /// The call that does nothing.
    fn nothing(&self);
    /// The time-stamp counter.
    fn clock(&self) -> u64;
    /// Waits for the next tick.
    fn wait_tick(&self);
    /// The page of Linux's memory at `physical`, if it can be read.
    fn page(&mut self, physical: u64) -> Option<&[AtomicU64; 512]>;
    /// Writes a line to the event ring.
    fn report(&self, line: fmt::Arguments<'_>);
}

/// A page, added to a sum.
fn add(sum: u64, page: &[AtomicU64; 512]) -> u64 {
    page.iter().fold(sum, |sum, word| (sum ^ word.load(Relaxed)).wrapping_mul(FACTOR))
}

/// Time-stamp ticks of the cheapest call of `what`, with those of a look at the counter.
fn cheapest(kernel: &impl Kernel, what: impl Fn()) -> u64 {
    let mut least = u64::MAX;
    for _ in 0..SAMPLES {
        let start = kernel.clock();
        what();
        least = least.min(kernel.clock() - start);
    }
    least
}

/// Does everything.
pub fn run(kernel: &mut impl Kernel) {
    let parameter = kernel.parameter();
    let (start, pages) = (parameter & !0xfff, (parameter & 0xfff) / 4);
    kernel.wait_tick();
    let look = cheapest(kernel, || {});
    let nothing = cheapest(kernel, || kernel.nothing()) - look;
    for _ in 0..PASSES {
        let (mut sum, mut instructions) = (FIRST, 0);
        let mut done = 0;
        while done < pages {
            kernel.wait_tick();
            let begun = kernel.clock();
            for n in done..pages.min(done + SLICE) {
                let address = start + 4096 * n;
                let Some(page) = kernel.page(address) else {
                    return kernel.report(format_args!("sum: {address:#x} cannot be read"));
                };
                sum = add(sum, page);
            }
            instructions += kernel.clock() - begun - look;
            done += SLICE;
        }
        kernel.report(format_args!(
            "sum: pages {pages} sum {sum:016x} pass {instructions} call {nothing}"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    struct Fake {
        page: [AtomicU64; 512],
        clock: Cell<u64>,
        waits: Cell<u64>,
        lines: RefCell<Vec<String>>,
    }

    impl Kernel for Fake {
        fn parameter(&self) -> u64 {
            0x10_0000 + 4 * 20
        }
        fn nothing(&self) {
            self.clock.set(self.clock.get() + 70);
        }
        fn clock(&self) -> u64 {
            self.clock.set(self.clock.get() + 3);
            self.clock.get()
        }
        fn wait_tick(&self) {
            self.clock.set(self.clock.get() + 1_000_000);
            self.waits.set(self.waits.get() + 1);
        }
        fn page(&mut self, physical: u64) -> Option<&[AtomicU64; 512]> {
            self.clock.set(self.clock.get() + 500);
            (0x10_0000..0x11_4000).contains(&physical).then_some(&self.page)
        }
        fn report(&self, line: fmt::Arguments<'_>) {
            self.lines.borrow_mut().push(line.to_string());
        }
    }

    #[test]
    fn passes_are_measured_without_the_waits() {
        let page = core::array::from_fn(|n| AtomicU64::new(n as u64));
        let (clock, waits) = (Cell::new(0), Cell::new(0));
        let mut fake = Fake { page, clock, waits, lines: RefCell::default() };
        run(&mut fake);
        let lines = fake.lines.borrow();
        assert_eq!((lines.len(), fake.waits.get()), (PASSES as usize, 1 + 2 * u64::from(PASSES)));
        assert!(lines.iter().all(|line| line == &lines[0]), "{lines:?}");
        assert!(
            lines[0].starts_with("sum: pages 20 sum ") && lines[0].ends_with(" pass 10000 call 70")
        );
    }

    #[test]
    fn each_word_and_its_place_count() {
        let page = |n: usize, value| {
            let page: [AtomicU64; 512] = core::array::from_fn(|_| AtomicU64::new(0));
            page[n].store(value, Relaxed);
            add(FIRST, &page)
        };
        assert_ne!(page(0, 1), page(1, 1));
        assert_ne!(page(511, 1 << 63), page(511, 0));
        assert_eq!(page(3, 0), page(4, 0));
    }
}
