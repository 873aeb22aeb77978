//! Table `start`: how long it takes until a unikernel runs, and until it has.

use super::{described, kyozon, micros};
use crate::product;
use anyhow::{ensure, Result};
use kyozon_results::Row;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Starts of each kind.
const STARTS: usize = 100;
/// Starts before which nothing was started for a while, and for how long: for what Linux does once for all that come
/// within a second.
const ALONE: usize = 21;
const QUIET: Duration = Duration::from_secs(2);
/// Seconds that a guest may take.
const LIMIT: &str = "60";

pub fn measure(results: &Path) -> Result<()> {
    let mut table = described(results, "start")?;
    for backend in ["kvm", "process"] {
        let run = |image: &str, words: &[&str]| -> Result<String> {
            let mut command = kyozon()?;
            command.args(["run", "--time-limit", LIMIT, "--backend", backend]);
            // Directly, as a shell does it: the laboratory's own way to run a program takes milliseconds.
            let done = command.arg(product::file(image)?).args(words).output()?;
            ensure!(done.status.success(), "{image}: {}", String::from_utf8_lossy(&done.stderr));
            Ok(String::from_utf8(done.stdout)?)
        };
        let started = || -> Result<f64> {
            let said = micros(&run("start.elf", &[])?)?;
            ensure!(said.len() == 1, "start.elf said {said:?}");
            Ok(said[0])
        };
        let (mut first, mut whole) = (Vec::new(), Vec::new());
        for _ in 0..STARTS {
            first.push(started()?);
            let before = Instant::now();
            let said = run("hello.elf", &[])?;
            whole.push(before.elapsed().as_nanos() as f64 / 1000.0);
            ensure!(said.starts_with("Hello"), "hello.elf said {said:?}");
        }
        let mut alone = Vec::new();
        for _ in 0..ALONE {
            thread::sleep(QUIET);
            alone.push(started()?);
        }
        let said = run("shm.elf", &["--", "spawn", &STARTS.to_string()])?;
        let threads = micros(&said)?;
        ensure!(threads.len() == STARTS, "{} threads", threads.len());
        for (name, samples) in [
            ("first instruction", first),
            ("first instruction, after a rest", alone),
            ("hello, to its end", whole),
            ("thread", threads),
        ] {
            table = table.row(Row::from_samples(name, "us", &samples)?.group(backend));
        }
    }
    table.write(results)?;
    Ok(())
}
