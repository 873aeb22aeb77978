//! One interface to threads, a group, a clock, a network port and output, with two implementations, so that one source
//! makes two programs: an image whose threads are virtual machines (feature `image`), and a program whose threads are
//! the host's (feature `host`).
//!
//! Invariant: [`machine`] has the same names and compatible types in both.
//!
//! Must not know: what the program computes.
#![cfg_attr(feature = "image", no_std)]

extern crate alloc;

#[cfg_attr(feature = "image", path = "image.rs")]
#[cfg_attr(not(feature = "image"), path = "host.rs")]
pub mod machine;
mod memory;
mod numbers;

pub use memory::Memory;
pub use numbers::{fingerprint, Numbers};

use alloc::string::String;
use alloc::vec::Vec;

/// What an example was asked for: numbers, in order, and whether to say how long it took.
#[derive(Debug, Default)]
pub struct Wishes {
    numbers: Vec<usize>,
    time: bool,
}

impl Wishes {
    /// Of these words.
    pub fn of(words: impl Iterator<Item = String>) -> Self {
        let mut wishes = Self::default();
        for word in words {
            match word.parse() {
                Ok(number) => wishes.numbers.push(number),
                Err(_) => wishes.time |= word == "time",
            }
        }
        wishes
    }

    /// Of the program's arguments.
    pub fn new() -> Self {
        Self::of(machine::arguments())
    }

    /// The number at a place, 1 or more and at most so many, or another where there is none.
    pub fn number(&self, at: usize, most: usize, otherwise: usize) -> usize {
        self.numbers.get(at).copied().unwrap_or(otherwise).clamp(1, most)
    }

    /// Says how many nanoseconds it took, where that was asked for.
    pub fn say_time(&self, took: u64) {
        if self.time {
            machine::say(format_args!("time {} us", took / 1000));
        }
    }
}

/// Says what a program does: a function of type `fn() -> u8`.
#[cfg(feature = "image")]
#[macro_export]
macro_rules! program {
    ($run:path) => {
        kyozon_unikernel::main!($run);
    };
}

/// Says what a program does: a function of type `fn() -> u8`.
#[cfg(not(feature = "image"))]
#[macro_export]
macro_rules! program {
    ($run:path) => {
        fn main() -> std::process::ExitCode {
            std::process::ExitCode::from($run())
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_within_bounds() {
        let words = ["4", "time", "1000000", "0"].map(String::from);
        let wishes = Wishes::of(words.into_iter());
        assert_eq!([0, 1, 2, 3].map(|at| wishes.number(at, 100, 7)), [4, 100, 1, 7]);
        assert!(wishes.time && !Wishes::of(core::iter::empty()).time);
    }
}
