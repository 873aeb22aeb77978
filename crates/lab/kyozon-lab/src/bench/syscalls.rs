//! Table `syscalls`: the time of system calls of library Linux, of the host, and of User-Mode Linux; and of boots.
//!
//! The same program measures on each kernel. Rounds alternate between the kernels.

use super::described;
use crate::{process, product};
use anyhow::{ensure, Context, Result};
use kyozon_results::Row;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Rounds. In each, every kernel is measured once; odd rounds reverse the order.
const ROUNDS: usize = 25;
/// Boots whose CPU time is taken.
const BOOTS: usize = 50;
/// Rounds with User-Mode Linux, which takes seconds each.
const PEER_ROUNDS: usize = 5;
const LIMIT: Duration = Duration::from_secs(60);
/// The kernels, in the order of the table.
const KERNELS: [&str; 3] = ["direct", "native", "uml"];
const ROWS: [&str; 6] = ["getpid", "read", "write", "fstat", "open-close", "pipe"];

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    let image = product::file("linux.elf").context("run make library")?;
    // On some processors User-Mode Linux cannot start a process: it knows smaller floating-point states only.
    let peer_works =
        peer().map_err(|error| eprintln!("syscalls: without User-Mode Linux: {error:#}")).is_ok();
    // Nanoseconds by kernel and row, one figure a round.
    let mut times: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for round in 0..ROUNDS {
        let mut kernels = KERNELS.to_vec();
        if round % 2 == 1 {
            kernels.reverse();
        }
        for kernel in kernels
            .into_iter()
            .filter(|kernel| *kernel != "uml" || (peer_works && round < PEER_ROUNDS))
        {
            let output = if kernel == "uml" {
                peer()?.0
            } else {
                program(&image, &["bench-syscalls", kernel])?
            };
            for (row, ns) in figures(&output)? {
                times.entry((kernel, row)).or_default().push(ns);
            }
        }
        if round % 5 == 4 {
            eprintln!("syscalls: {} of {ROUNDS} rounds", round + 1);
        }
    }
    let mut table = described(results, "syscalls")?;
    for row in ROWS {
        let of = |kernel| {
            times.get(&(kernel, row)).with_context(|| format!("no figure for {row}, {kernel}"))
        };
        for kernel in KERNELS.into_iter().filter(|kernel| *kernel != "uml" || peer_works) {
            let figures = Row::from_samples(kernel, "ns", of(kernel)?)?.counting("rounds");
            table = table.row(figures.group(row));
        }
        table = table.row(Row::ratio("direct : native", of("direct")?, of("native")?)?.group(row));
    }
    let boots =
        (0..BOOTS).map(|_| Ok(program(&image, &["bench-boot"])?.trim().parse::<f64>()? / 1e6));
    let boots = boots.collect::<Result<Vec<_>>>()?;
    table = table.row(Row::from_samples("direct", "ms", &boots)?.counting("boots").group("boot"));
    if peer_works {
        let boots = (0..PEER_ROUNDS).map(|_| Ok(peer()?.1)).collect::<Result<Vec<_>>>()?;
        table = table.row(Row::from_samples("uml", "ms", &boots)?.counting("boots").group("boot"));
    }
    table.write(results)?;
    Ok(())
}

fn program(image: &Path, words: &[&str]) -> Result<String> {
    let mut command = Command::new(product::file("kyozon-linux")?);
    process::run_ok(command.env("KYOZON_LINUX", image).args(words), LIMIT)
}

/// Lines of a row's name and its nanoseconds.
fn figures(output: &str) -> Result<Vec<(&'static str, f64)>> {
    let figure = |row: &&'static str| {
        let line =
            output.lines().find_map(|line| line.trim().strip_prefix(*row)?.strip_prefix(' '));
        let ns =
            line.with_context(|| format!("no line for {row} in {output:?}"))?.trim().parse()?;
        Ok((*row, ns))
    };
    ROWS.iter().map(figure).collect()
}

/// Boots User-Mode Linux with the program as its first process. Returns what that printed, and the milliseconds that
/// the kernel says it ran until then.
fn peer() -> Result<(String, f64)> {
    let root = tempfile::tempdir()?;
    for folder in ["dev", "proc", "sys", "tmp"] {
        fs::create_dir(root.path().join(folder))?;
    }
    fs::copy(product::file("kyozon-linux")?, root.path().join("kyozon-linux"))?;
    let mut command = Command::new("linux.uml");
    command.args([
        "mem=128M",
        "root=/dev/root",
        "rootfstype=hostfs",
        "rw",
        "init=/kyozon-linux",
        "panic=-1",
    ]);
    command.arg(format!("rootflags={}", root.path().display()));
    // What follows goes to the first process.
    command.args(["con=null", "con0=null,fd:1", "--", "bench-syscalls", "native", "/tmp"]);
    let finished = process::run(&mut command, LIMIT)?;
    let output = finished.stdout;
    ensure!(output.contains("\npipe "), "it does not run a process on this processor");
    let line = output
        .lines()
        .find(|line| line.contains("as init process"))
        .context("no time of the boot")?;
    let seconds = line.trim().trim_start_matches('[').split(']').next().unwrap_or_default().trim();
    Ok((output.clone(), seconds.parse::<f64>()? * 1000.0))
}
