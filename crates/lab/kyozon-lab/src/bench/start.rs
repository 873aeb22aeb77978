//! Table `start`: time until a unikernel runs, and until it has ended.

use super::{described, kyozon, micros};
use crate::product;
use anyhow::{ensure, Result};
use kyozon_results::Row;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Starts of each kind.
const STARTS: usize = 100;
/// Starts after a rest of [`QUIET`]: without a recent start, Linux repeats work that it otherwise does once for all
/// starts within a second.
const ALONE: usize = 21;
const QUIET: Duration = Duration::from_secs(2);
/// Runs that start threads, and threads of each run.
const RUNS: usize = 25;
const THREADS: usize = 10;
/// Time limit of a guest, in seconds.
const LIMIT: &str = "60";

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    let mut table = described(results, "start")?;
    for backend in ["kvm", "process"] {
        let run = |image: &str, words: &[&str]| -> Result<String> {
            let mut command = kyozon()?;
            command.args(["run", "--time-limit", LIMIT, "--backend", backend]);
            // Started directly, as by a shell: `process::run` adds milliseconds.
            let done = command.arg(product::file(image)?).args(words).output()?;
            ensure!(done.status.success(), "{image}: {}", String::from_utf8_lossy(&done.stderr));
            Ok(String::from_utf8(done.stdout)?)
        };
        let started = || -> Result<f64> {
            let samples = micros(&run("start.elf", &[])?)?;
            ensure!(samples.len() == 1, "start.elf printed {} samples", samples.len());
            Ok(samples[0])
        };
        let (mut first, mut whole) = (Vec::new(), Vec::new());
        for _ in 0..STARTS {
            first.push(started()?);
            let before = Instant::now();
            let output = run("hello.elf", &[])?;
            whole.push(before.elapsed().as_nanos() as f64 / 1000.0);
            ensure!(output.starts_with("Hello"), "hello.elf printed {output:?}");
        }
        let mut alone = Vec::new();
        for _ in 0..ALONE {
            thread::sleep(QUIET);
            alone.push(started()?);
        }
        let mut threads = Vec::new();
        for _ in 0..RUNS {
            let samples = micros(&run("shm.elf", &["--", "spawn", &THREADS.to_string()])?)?;
            ensure!(samples.len() == THREADS, "{} threads", samples.len());
            threads.push(samples);
        }
        for (name, samples) in [
            ("first instruction", first),
            ("first instruction, after a rest", alone),
            ("hello, to its end", whole),
        ] {
            let row = Row::from_samples(name, "us", &samples)?.counting("starts");
            table = table.row(row.group(backend));
        }
        table = table.row(Row::from_rounds("thread", "us", &threads)?.group(backend));
    }
    table.write(results)?;
    Ok(())
}
