//! A guest whose whole input is fixed before it starts.
//!
//! Under `-icount shift=0`, each instruction advances QEMU's virtual clock by one nanosecond and its time-stamp
//! counter by one tick. Nothing enters the guest from outside: requests are in the initramfs, answers go over a
//! serial line into a file, the real-time clock starts at a fixed date, and random-number instructions are off. Two
//! runs then execute the same instructions, and a difference of time-stamp counters is a count of instructions.

use crate::emulator::{self, Emulator};
use crate::guest::{collect, hello, Ended, Output};
use crate::protocol::{receive, send, Request};
use crate::{cache, spec::Spec};
use anyhow::{ensure, Context, Result};
use std::fs::{self, File};
use std::io::BufReader;
use std::time::Duration;

/// The results of a whole run.
#[derive(Debug, PartialEq)]
pub struct Finished {
    /// Time-stamp counter at the agent's first instruction.
    pub booted_tsc: u64,
    /// The output of each script.
    pub outputs: Vec<Output>,
    /// The kernel's console.
    pub console: String,
    /// Output of the third serial line, the cokernel's: port 0x3e8.
    pub cokernel: String,
}

impl From<Finished> for Ended {
    fn from(run: Finished) -> Self {
        Self { console: run.console, cokernel: run.cokernel }
    }
}

/// For `-cpu`: without the instructions that would bring random numbers into the guest.
pub const WITHOUT_RANDOM: &str = ",rdrand=off,rdseed=off";

/// Arguments for a clock of one nanosecond an instruction that starts at a fixed date.
pub const FIXED_CLOCK: [&str; 4] =
    ["-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm"];

/// Runs the scripts one after the other, for at most `limit` of real time altogether, and powers the guest off.
pub fn run(spec: &Spec, scripts: &[&str], limit: Duration) -> Result<Finished> {
    let mut emulator = boot(spec, scripts, limit)?;
    match answers(&emulator, scripts.len()) {
        Ok((booted_tsc, outputs)) => Ok(Finished {
            booted_tsc,
            outputs,
            console: emulator.serial(0),
            cokernel: emulator.serial(2),
        }),
        Err(_) => Err(emulator.fail("it ended before its work was done")),
    }
}

/// Runs `prepare`, which makes another kernel ready whose initramfs has [`requests`] for one script, and `end`, which
/// has that kernel take over and prints nothing. Returns that agent's first time-stamp counter and the script's output.
pub fn run_into_restart(
    spec: &Spec,
    prepare: &str,
    end: &str,
    limit: Duration,
) -> Result<(u64, Output)> {
    let mut emulator = boot(spec, &[prepare, end], limit)?;
    let mut file = BufReader::new(File::open(emulator.folder().join("ttyS1"))?);
    let mut read = || -> Result<(u64, Output)> {
        hello(&mut file)?;
        collect(|| receive(&mut file))?.map_err(anyhow::Error::msg)?.expect_success()?;
        let (_, tsc) = hello(&mut file)?;
        Ok((tsc, collect(|| receive(&mut file))?.map_err(anyhow::Error::msg)?))
    };
    read().map_err(|error| emulator.fail(&format!("no other kernel took over: {error:#}")))
}

/// A guest that has ended after its scripts.
fn boot(spec: &Spec, scripts: &[&str], limit: Duration) -> Result<Emulator> {
    ensure!(
        spec.smp == 1,
        "a repeatable run has one CPU: the emulator would interleave several in an order of its own"
    );
    ensure!(
        spec.accel == "tcg",
        "a repeatable run needs --accel tcg: only an interpreter counts instructions"
    );
    let folder = cache::scratch()?;
    let initrd = folder.path().join("initrd");
    let mut archive = spec.initramfs(&[])?;
    archive.file("kyozon/batch", 0o644, requests(scripts)?)?;
    fs::write(&initrd, archive.pack()).context("write the initramfs")?;
    let mut spec = spec.clone();
    spec.cpu.push_str(WITHOUT_RANDOM);
    let mut command = emulator::qemu();
    command.args(emulator::arguments(
        &spec,
        &initrd,
        &spec.command_line("tsc=reliable random.trust_cpu=off"),
    )?);
    command.args(FIXED_CLOCK);
    command.args(["-serial", "file:ttyS0", "-serial", "file:ttyS1", "-serial", "file:ttyS2"]);
    let mut emulator = Emulator::start(command, folder, spec.name())?;
    if emulator.wait(limit)?.is_none() {
        return Err(emulator.fail(&format!("it did not end within {} s", limit.as_secs())));
    }
    Ok(emulator)
}

/// The agent's requests in the initramfs: the scripts, then power-off.
pub(crate) fn requests(scripts: &[&str]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for script in scripts {
        send(&mut out, &Request::Run { script: (*script).into(), timeout_ms: 3_600_000 }, b"")?;
    }
    send(&mut out, &Request::PowerOff, b"")?;
    Ok(out)
}

/// The agent's answers on the second serial line: its first time-stamp counter and `count` complete outputs, or an
/// error.
pub(crate) fn answers(emulator: &Emulator, count: usize) -> Result<(u64, Vec<Output>)> {
    let mut file = BufReader::new(File::open(emulator.folder().join("ttyS1"))?);
    let (_, booted_tsc) = hello(&mut file)?;
    let mut outputs = Vec::new();
    for _ in 0..count {
        outputs.push(collect(|| receive(&mut file))?.map_err(anyhow::Error::msg)?);
    }
    Ok((booted_tsc, outputs))
}
