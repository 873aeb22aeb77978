//! Experiments on memory that two threads of execution share, and on the alternatives to it. Virtual machines (feature
//! `image`) and host threads (feature `host`) run the same source, so that only the isolation between them differs.
//!
//! | experiment | a sample is the time of |
//! | --- | --- |
//! | `exchange` | a round trip of 8192 integers in shared memory, under a lock: written, each incremented, checked |
//! | `line` | a round trip of a cache line |
//! | `wake N` | waking a waiter by a permit, N microseconds after it began to wait |
//! | `token` | the call that gives a token: in machines, the tender's doorbell |
//! | `nap` | a sleep whose deadline has passed: in machines, a round trip to the tender |
//! | `ring N` | [`VOLUME`] bytes through a ring, in records of N bytes |
//! | `place N` | the same, written and read in place |
//! | `across N` | the same bytes, copied once by one thread after the other wrote them |
//! | `copy N` | the same bytes, copied once from one buffer |
//! | `spawn` | starting a thread, up to its first instruction |
//! | `frames` | the exchange over a network of two machines, in frames through the tender (`image`) |
//! | `tcp`, `unix`, `pipe` | the exchange through the host's kernel (`host`) |
//!
//! Two host threads run on the first two CPUs that they may use; the tender places machines.
//!
//! Invariants: every wait has a deadline; all received data is checked, and a wrong number is an error, not a sample.
//!
//! Must not know: which results are compared.
#![cfg_attr(feature = "image", no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod error;
mod exchange;
#[cfg(feature = "image")]
mod frames;
mod line;
mod numbers;
mod pin;
mod ring;
#[cfg(not(feature = "image"))]
mod streams;
mod wake;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use kyozon_portable::machine;

pub use error::Error;
pub use ring::VOLUME;

/// Maximum nanoseconds of a wait.
const TIMEOUT: u64 = 10_000_000_000;
/// Maximum samples of a run.
const MAX_SAMPLES: usize = 100_000;
/// Discarded samples at the start: memory was not touched yet, and branch predictors are untrained.
const WARM_UP: usize = 20;
/// Samples on a line of output.
const LINE: usize = 32;

/// Samples in nanoseconds.
type Samples = Result<Vec<u64>, Error>;
/// Takes the number of samples and the experiment's own number.
type Experiment = fn(usize, usize) -> Samples;

const ALL: &[(&str, Experiment)] = &[
    ("exchange", exchange::measure),
    ("line", line::measure),
    ("wake", wake::measure),
    ("token", wake::token),
    ("nap", wake::nap),
    ("spawn", wake::spawn),
    ("ring", ring::through),
    ("place", ring::in_place),
    ("across", ring::across),
    ("copy", ring::copy),
    #[cfg(feature = "image")]
    ("frames", frames::measure),
    #[cfg(not(feature = "image"))]
    ("tcp", streams::tcp),
    #[cfg(not(feature = "image"))]
    ("unix", streams::unix),
    #[cfg(not(feature = "image"))]
    ("pipe", streams::pipes),
];

/// Runs the experiment that the program's arguments name: its name, the number of samples, and its own number. Prints
/// the samples in nanoseconds, or the error. Returns the exit status. In `frames` the second machine prints nothing.
pub fn run() -> u8 {
    run_words(&machine::arguments().collect::<Vec<_>>())
}

/// [`run`], with `words` for arguments.
pub fn run_words(words: &[String]) -> u8 {
    match samples(words) {
        Ok(samples) => {
            for piece in samples.chunks(LINE) {
                let mut line = String::new();
                for sample in piece {
                    // Writing to a string never fails.
                    let _ = write!(line, "{sample} ");
                }
                machine::print_line(format_args!("{}", line.trim_end()));
            }
            0
        }
        Err(error) => {
            machine::print_line(format_args!("{error}"));
            1
        }
    }
}

/// Runs the experiment that `words` name, as [`run`] does. Returns its samples in nanoseconds.
///
/// # Errors
///
/// [`Error::Arguments`] if the words are not those of [`run`]; other errors if the experiment fails.
pub fn samples(words: &[String]) -> Samples {
    let number = |index: usize| words.get(index).map_or(Ok(0), |word| word.parse::<usize>());
    let name = words.first().map(String::as_str);
    let experiment = ALL.iter().find(|(known, _)| Some(*known) == name);
    match (experiment, number(1), number(2)) {
        (Some((_, measure)), Ok(count @ 1..=MAX_SAMPLES), Ok(number)) => {
            let mut samples = measure(WARM_UP + count, number)?;
            samples.drain(..WARM_UP.min(samples.len()));
            Ok(samples)
        }
        _ => Err(Error::Arguments),
    }
}

/// The deadline of a wait that begins now.
fn deadline() -> Option<u64> {
    Some(machine::now() + TIMEOUT)
}

#[cfg(all(test, not(feature = "image")))]
mod tests;
