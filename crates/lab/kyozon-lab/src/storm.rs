//! Storms: random privileged operations inside Linux, in mode `vmm`, which must not harm the cokernel.
//!
//! A run boots a guest, loads the test cokernel, and has every CPU of Linux carry out random operations
//! (`linux/attacks/storm.c`). Linux may die: that harm is its own, and a machine that resets itself ends the run. The
//! cokernel's serial line is the judge, because nothing in Linux can be trusted after the first operation. The wall is
//! locked: otherwise a panic of Linux would rightly end the ticks. The seed determines the kernel, the number of CPUs
//! and the operations of each CPU.

use crate::emulator::keep_console;
use crate::guest::Guest;
use crate::kernels::{Kernel, SERIES};
use crate::{product, spec::Spec};
use anyhow::{bail, ensure, Context, Result};
use regex::Regex;
use std::io::Read;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Duration of the operations of one run, in the guest's time.
const STORM: Duration = Duration::from_secs(10);
/// CPU time of the emulator without a word from the cokernel after which its ticks have ended. It reports four times a
/// second.
const SILENCE: Duration = Duration::from_secs(12);
/// The same in wall-clock time: CPUs that are halted for ever take no CPU time.
const LONG_SILENCE: Duration = Duration::from_secs(60);
/// Ticks between two lines of the cokernel.
const INTERVAL: u64 = 25;
/// Lines that the cokernel must write after the operations have ended.
const LINES_AFTER: usize = 4;

/// Options of `kyozon-lab storm`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Repeat the run of this seed
    #[arg(long)]
    seed: u64,
    /// Print each operation on the guest's console before it begins; the console is shown at the end
    #[arg(long)]
    trace: bool,
}

/// The end of a run that did no harm to the cokernel.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Survived {
    /// Operations and the cokernel both went on to the end.
    Whole,
    /// Linux ended the machine.
    Reset,
}

/// Repeats one run.
pub fn repeat(options: &Options) -> Result<()> {
    let survived = run(options.seed, options.trace)?;
    println!("seed {}: {survived:?}", options.seed);
    Ok(())
}

/// Counts of a series of runs, and one line for each run that failed.
#[derive(Debug, Default)]
pub struct Series {
    /// Runs in which the cokernel was not harmed.
    pub survived: usize,
    /// Of these, the runs in which Linux reset the machine.
    pub resets: usize,
    /// What failed, with the command that repeats it.
    pub failures: Vec<String>,
}

/// Runs storms with successive seeds, from a random one, until `limit` is over.
pub fn series(limit: Duration) -> Result<Series> {
    let mut first = [0; 4];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut first)?;
    let first = u64::from(u32::from_le_bytes(first));
    let start = Instant::now();
    let mut series = Series::default();
    for seed in first.. {
        if start.elapsed() >= limit {
            break;
        }
        match run(seed, false) {
            Ok(survived) => {
                series.survived += 1;
                series.resets += usize::from(survived == Survived::Reset);
            }
            Err(error) => {
                let line =
                    format!("seed {seed}: {error:#}; repeat: kyozon-lab storm --seed {seed}");
                eprintln!("{line}");
                series.failures.push(line);
            }
        }
    }
    Ok(series)
}

/// Kernel series and number of CPUs of a seed.
fn machine(seed: u64) -> (&'static str, u32) {
    (SERIES[(seed % 2) as usize], 1 + (seed / 2 % 2) as u32)
}

fn run(seed: u64, trace: bool) -> Result<Survived> {
    let (series, cpus) = machine(seed);
    let kernel = Kernel::fetch(series, "cloud", false)?;
    let spec = product::with_attacks(product::install(Spec::new(&kernel).smp(cpus))?)?;
    let mut guest = Guest::boot(&spec)?;
    let load = format!(
        "insmod /m/kyozon-attacks.ko && head -c 32 /dev/urandom >/tmp/key && \
         kyozon load --isolation vmm --key-file /tmp/key --serial 0x3e8 \
         --cokernel /usr/lib/kyozon/cokernel-test.bin --parameter {}",
        16 | INTERVAL << 8
    );
    guest.run(&load)?.expect_success().context("load the cokernel")?;
    if trace {
        guest.run("dmesg -n 8")?;
    }
    guest.run(&format!(
        "(echo root storm {seed} {} {} >/proc/kyozon-attacks) </dev/null >/dev/null 2>&1 &",
        STORM.as_millis(),
        if trace { "trace" } else { "" }
    ))?;
    let outcome = watch(&mut guest);
    if outcome.is_err() || trace {
        let name = format!("storm {seed}");
        let both = format!("{}\n--- cokernel\n{}", guest.serial(0), guest.serial(2));
        let path = keep_console(&name, &both)?;
        return outcome.with_context(|| format!("{series}, {cpus} CPUs, {}", path.display()));
    }
    outcome
}

/// Watches the cokernel's line through the storm and after it.
fn watch(guest: &mut Guest) -> Result<Survived> {
    let start = Instant::now();
    let mut heard = (0, Duration::ZERO, start);
    let mut lines_in_storm = None;
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let ended = guest.ended()?;
        let cokernel = guest.serial(2);
        judge(&cokernel, &guest.serial(0))?;
        if ended {
            return Ok(Survived::Reset);
        }
        let lines = ticks(&cokernel).count();
        let (time, now) = (guest.emulator_time()?, Instant::now());
        if lines > heard.0 {
            heard = (lines, time, now);
        }
        ensure!(
            time - heard.1 < SILENCE && now - heard.2 < LONG_SILENCE,
            "the ticks ended after tick {}",
            ticks(&cokernel).last().unwrap_or(0)
        );
        if start.elapsed() > STORM + Duration::from_secs(1) {
            let before = *lines_in_storm.get_or_insert(lines);
            if lines >= before + LINES_AFTER {
                return Ok(Survived::Whole);
            }
        }
    }
}

/// Tick numbers that the cokernel has reported.
fn ticks(cokernel: &str) -> impl Iterator<Item = u64> + '_ {
    let number = |line: &str| line.rsplit_once("test keep: tick ")?.1.trim().parse().ok();
    cokernel.lines().filter_map(number)
}

/// A line that says that the cokernel was harmed.
static BROKEN: LazyLock<Regex> = LazyLock::new(|| {
    let words = "was changed|hypervisor|panic|stopped|runaway|fault in|wall: opened|unknown exit|is invalid";
    Regex::new(words).expect("a pattern")
});

/// Fails if a line of the cokernel or of Linux shows that the wall did not hold.
fn judge(cokernel: &str, console: &str) -> Result<()> {
    if let Some(line) = cokernel.lines().find(|line| BROKEN.is_match(line)) {
        bail!("the cokernel's line says: {line}");
    }
    if let Some(line) = console.lines().find(|line| line.contains("storm: saw")) {
        bail!("Linux read the cokernel's memory: {line}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_read_from_complete_lines() {
        let text = "x test keep: begin\n[1] test keep: tick 25\n[2] test keep: tick 5";
        assert_eq!(ticks(text).collect::<Vec<_>>(), [25, 5]);
    }

    #[test]
    fn harm_to_the_cokernel_is_a_failure() {
        assert!(judge("wall: write of MSR 0x10\ntest keep: tick 50\n", "BUG: Linux\n").is_ok());
        assert!(judge("test keep: word 3 was changed to 0x0\n", "").is_err());
        assert!(judge("hypervisor failed: vector 13\n", "").is_err());
        assert!(judge("", "kyozon-attacks: storm: saw 1 canaries\n").is_err());
    }

    #[test]
    fn four_successive_seeds_cover_kernels_and_cpus() {
        let mut all: Vec<_> = (8..12).map(machine).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 4);
    }
}
