//! Arguments of the example programs: numbers, and `time`.

use crate::machine;
use alloc::string::String;
use alloc::vec::Vec;

/// Arguments of an example program: numbers, in order, and whether to print how long the work took.
#[derive(Debug, Default)]
pub struct Arguments {
    numbers: Vec<usize>,
    time: bool,
}

impl Arguments {
    /// Parses the program's arguments. Words that are neither numbers nor `time` are ignored.
    pub fn new() -> Self {
        Self::parse(machine::arguments())
    }

    fn parse(words: impl Iterator<Item = String>) -> Self {
        let mut arguments = Self::default();
        for word in words {
            match word.parse() {
                Ok(number) => arguments.numbers.push(number),
                Err(_) => arguments.time |= word == "time",
            }
        }
        arguments
    }

    /// The number at position `index`, or `default` if there is none; clamped to 1 to `max`.
    pub fn number(&self, index: usize, max: usize, default: usize) -> usize {
        self.numbers.get(index).copied().unwrap_or(default).clamp(1, max)
    }

    /// Prints a duration in nanoseconds, if the arguments ask for it.
    pub fn print_time(&self, nanoseconds: u64) {
        if self.time {
            machine::print_line(format_args!("time {} us", nanoseconds / 1000));
        }
    }
}

#[cfg(test)]
mod tests;
