//! Experiments on memory that two threads of execution share, and on the ways to do without. One source for virtual
//! machines (feature `image`) and for threads of the host (feature `host`), so that what differs is what is between them.
//!
//! | experiment | a sample is the time of |
//! | --- | --- |
//! | `exchange` | 8192 integers there and back in shared memory, under a lock: written, each raised by one, checked |
//! | `line` | a cache line there and back |
//! | `wake N` | a permit's way to who waits for it, N microseconds after that began to wait |
//! | `token` | the call that gives a token: a doorbell of the tender's, in machines |
//! | `nap` | the call that sleeps, where its time has come: there and back to the tender, in machines |
//! | `ring N` | [`VOLUME`] bytes through a ring, in records of N |
//! | `place N` | the same, written and read where they lie |
//! | `across N` | the same bytes copied once, by one, after the other wrote them |
//! | `copy N` | the same bytes copied once, from one place |
//! | `spawn` | a thread's start, up to its first instruction |
//! | `frames` | the exchange by two machines' network, in frames through the tender (`image`) |
//! | `tcp`, `unix`, `pipe` | the exchange by the host's kernel (`host`) |
//!
//! Two threads of the host run on two CPUs, the first two that they may run on; machines are the tender's to place.
//!
//! Invariants: every wait has an end; what came is checked, and a wrong number is a failure, not a sample.
//!
//! Must not know: who compares what with what.
#![cfg_attr(feature = "image", no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod exchange;
#[cfg(feature = "image")]
mod frames;
mod line;
mod numbers;
mod place;
mod ring;
#[cfg(not(feature = "image"))]
mod streams;
mod wake;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use kyozon_portable::machine;

pub use ring::VOLUME;

/// Who waits longer, in nanoseconds, waits for nobody.
const PATIENCE: u64 = 10_000_000_000;
/// Samples of a run, at most.
const MOST: usize = 100_000;
/// Samples before the first: of memory that nobody touched, and a processor that has not found out.
const WARM: usize = 20;
/// Numbers of a line.
const LINE: usize = 32;

/// Nanoseconds, or what went wrong.
type Samples = Result<Vec<u64>, &'static str>;
/// How many samples, and the experiment's own number.
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

/// Does what the arguments say: an experiment, how many samples, and its number. Says each line of nanoseconds; those
/// of a second machine say nothing.
pub fn run() -> u8 {
    run_words(&machine::arguments().collect::<Vec<_>>())
}

/// As [`run`], with these words.
pub fn run_words(words: &[String]) -> u8 {
    match samples(words) {
        Ok(samples) => {
            for piece in samples.chunks(LINE) {
                let mut line = String::new();
                for sample in piece {
                    // Memory is there, or the program ends.
                    let _ = write!(line, "{sample} ");
                }
                machine::print_line(format_args!("{}", line.trim_end()));
            }
            0
        }
        Err(why) => {
            machine::print_line(format_args!("{why}"));
            1
        }
    }
}

/// The samples that these words ask for.
///
/// # Errors
///
/// Words that are none of [`run`]'s, a number that came back wrong, or a peer that did not answer.
pub fn samples(words: &[String]) -> Samples {
    let number = |at: usize| words.get(at).map_or(Ok(0), |word| word.parse::<usize>());
    let name = words.first().map(String::as_str);
    let experiment = ALL.iter().find(|(known, _)| Some(*known) == name);
    match (experiment, number(1), number(2)) {
        (Some((_, measure)), Ok(count @ 1..=MOST), Ok(number)) => {
            let mut samples = measure(WARM + count, number)?;
            samples.drain(..WARM.min(samples.len()));
            Ok(samples)
        }
        _ => Err("arguments: an experiment, how many samples, and its number"),
    }
}

/// When now is too late.
fn deadline() -> Option<u64> {
    Some(machine::now() + PATIENCE)
}

#[cfg(all(test, not(feature = "image")))]
mod tests {
    use super::*;

    fn ask(words: &str) -> Samples {
        samples(&words.split(' ').map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn every_experiment_gives_its_samples() {
        for words in [
            "exchange 20",
            "token 20",
            "nap 20",
            "line 5",
            "wake 10 5",
            "wake 3 2000",
            "spawn 4",
            "ring 2 64",
            "ring 2 1048576",
            "place 2 4096",
            "copy 2 4096",
            "across 2 4096",
            "tcp 5",
            "unix 5",
            "pipe 5",
        ] {
            let count: usize = words.split(' ').nth(1).unwrap().parse().unwrap();
            let samples = ask(words).expect(words);
            assert_eq!(samples.len(), count, "{words}");
            assert!(
                samples.iter().all(|sample| (1..PATIENCE).contains(sample)),
                "{words}: {samples:?}"
            );
        }
    }

    #[test]
    fn other_words_are_refused() {
        for words in [
            "",
            "exchange",
            "exchange 0",
            "exchange 100001",
            "exchange -1",
            "ring 1 0",
            "ring 1 63",
            "ring 1 8388608",
            "none 1",
        ] {
            assert!(ask(words).is_err(), "{words}");
        }
    }
}
