//! Unikernels: threads that are virtual machines, the memory that they share, and the wall around each.

use crate::process::{self, Finished};
use crate::{bench, product};
use anyhow::{bail, ensure, Context, Result};
use kyozon_results::RowSet;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// Time limit of one program.
const LIMIT: Duration = Duration::from_secs(120);
/// Image, arguments, description, and the start of the output of a run that worked.
const EXAMPLES: [(&str, &[&str], &str, &str); 4] = [
    (
        "pingpong",
        &["200"],
        "two guests send 8192 numbers there and back",
        "200 rounds of 8192 numbers: ",
    ),
    (
        "sort",
        &["2", "500000"],
        "two guests sort half a million numbers",
        "500000 numbers sorted: true, ",
    ),
    ("matmul", &["2", "300"], "two guests multiply matrices", "300 rows multiplied: "),
    (
        "primes",
        &["4", "100000"],
        "a C program of four threads, each of them a guest",
        "9592 primes below 100000",
    ),
];
/// Rounds of the shared-memory experiments: enough for a demonstration, not for a measurement.
const ROUNDS: &str = "3";

/// Shows them on each backend that this machine has.
pub fn show() -> Result<()> {
    println!(
        "\nUnikernels: programs without an operating system, whose threads are virtual machines that share memory"
    );
    let hello = run("auto", "hello", &[])?;
    ensure!(hello.status.success(), "hello: {:?}", hello.stderr.lines().next());
    let virtual_machines = hello.stderr.contains("\"backend\":\"kvm\"");
    if !virtual_machines {
        println!("  skipped  virtual machines: /dev/kvm is not usable here; confined processes replace them");
    }
    let backends = [("kvm", "virtual machines"), ("process", "confined processes")];
    for (backend, what) in &backends[usize::from(!virtual_machines)..] {
        println!("  {what}");
        for (image, words, does, starts) in EXAMPLES {
            example(backend, image, words, does, starts)?;
        }
        wall(backend)?;
    }
    match available_parallelism() {
        Ok(cpus) if virtual_machines && cpus.get() >= 2 => shared_memory()?,
        _ => {
            println!("  skipped  8192 numbers there and back: needs virtual machines and two CPUs")
        }
    }
    Ok(())
}

fn run(backend: &str, image: &str, words: &[&str]) -> Result<Finished> {
    let mut command = bench::kyozon()?;
    command.args(["run", "--json", "--time-limit", "60", "--backend", backend]);
    command.arg(product::file(&format!("{image}.elf"))?).arg("--").args(words);
    process::run(&mut command, LIMIT)
}

fn example(backend: &str, image: &str, words: &[&str], does: &str, starts: &str) -> Result<()> {
    let start = Instant::now();
    let done = run(backend, image, words)?;
    let took = start.elapsed().as_secs_f64() * 1000.0;
    let line = done.stdout.lines().next().unwrap_or_default();
    if !done.status.success() || !line.starts_with(starts) {
        bail!("{image} on {backend}: {:?}", line.lines().chain(done.stderr.lines()).next());
    }
    println!("    {image:<9}{does}: {line} ({took:.0} ms including its start)");
    Ok(())
}

/// A guest that reads its tender's memory must be ended and reported.
fn wall(backend: &str) -> Result<()> {
    let done = run(backend, "unikernel-test", &["host-text"])?;
    let line = done.stderr.lines().next().unwrap_or_default();
    ensure!(
        done.status.code() == Some(120) && line.contains("crashed: page fault"),
        "{backend}: {line:?}"
    );
    println!("    wall     a guest reads its tender's code: {line}");
    Ok(())
}

/// Times of the paper's experiment, by each means.
fn shared_memory() -> Result<()> {
    let output = process::run_ok(
        bench::kyozon()?.args(["bench", "shm", "--json", "--rounds", ROUNDS]),
        LIMIT,
    )?;
    let set: RowSet = serde_json::from_str(&output).context("output of kyozon bench shm")?;
    let median = |name: &str| -> Result<f64> {
        let row = set.rows.iter().find(|row| row.name == name);
        Ok(row.with_context(|| format!("kyozon bench shm: no row {name}"))?.median)
    };
    let vm = median("vm")?;
    println!("  8192 numbers there and back");
    for (name, what) in [
        ("vm", "two virtual machines, shared memory"),
        ("process", "two confined processes, shared memory"),
        ("threads", "two threads of Linux"),
        ("vm-message", "two virtual machines, network frames"),
        ("unix", "two threads, UNIX socket"),
        ("pipe", "two threads, pipes"),
        ("tcp", "two threads, TCP"),
    ] {
        let time = median(name)?;
        println!("    {time:>8.1} us  {:>6.1} x  {what}", time / vm);
    }
    Ok(())
}
