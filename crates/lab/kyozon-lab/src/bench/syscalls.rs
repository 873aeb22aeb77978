//! Table `syscalls`: the time of system calls of library Linux, of the host, and of User-Mode Linux; and of boots.
//!
//! The same program measures on each kernel. Rounds alternate between the kernels. For `exec` it is the executable that
//! measures the host, unmodified: its system calls are instructions.

mod uml;

use super::described;
use crate::{process, product};
use anyhow::{Context, Result};
use kyozon_results::Row;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use uml::UserMode;

/// Rounds. In each, every kernel is measured once; odd rounds reverse the order.
const ROUNDS: usize = 25;
/// Boots whose CPU time is taken.
const BOOTS: usize = 50;
/// Rounds with User-Mode Linux, which takes seconds each.
const PEER_ROUNDS: usize = 9;
/// Its boots.
const PEER_BOOTS: usize = 9;
const LIMIT: Duration = Duration::from_secs(60);
/// The kernels, in the order of the table.
const KERNELS: [&str; 4] = ["direct", "exec", "native", "uml"];
const ROWS: [&str; 6] = ["getpid", "read", "write", "fstat", "open-close", "pipe"];

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    let image = product::file("linux.elf").context("run make library")?;
    let peer = UserMode::new()
        .map_err(|error| eprintln!("syscalls: without User-Mode Linux: {error:#}"))
        .ok();
    let note = |row: Row, kernel| match peer.as_ref().and_then(UserMode::note) {
        Some(note) if kernel == "uml" => row.note(note),
        _ => row,
    };
    // Nanoseconds by kernel and row, one figure a round.
    let mut times: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for round in 0..ROUNDS {
        let mut kernels = KERNELS.to_vec();
        if round % 2 == 1 {
            kernels.reverse();
        }
        for kernel in kernels {
            let output = match &peer {
                _ if kernel == "exec" => unmodified(&image)?,
                _ if kernel != "uml" => program(&image, &["bench-syscalls", kernel])?,
                Some(peer) if round < PEER_ROUNDS => peer.syscalls()?,
                _ => continue,
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
        for kernel in KERNELS.into_iter().filter(|kernel| *kernel != "uml" || peer.is_some()) {
            let figures = Row::from_samples(kernel, "ns", of(kernel)?)?.counting("rounds");
            table = table.row(note(figures.group(row), kernel));
        }
        table = table.row(Row::ratio("direct : native", of("direct")?, of("native")?)?.group(row));
        table = table.row(Row::ratio("exec : native", of("exec")?, of("native")?)?.group(row));
        if peer.is_some() {
            table = table.row(Row::ratio("direct : uml", of("direct")?, of("uml")?)?.group(row));
        }
    }
    let boots =
        (0..BOOTS).map(|_| Ok(program(&image, &["bench-boot"])?.trim().parse::<f64>()? / 1e6));
    let boots = boots.collect::<Result<Vec<_>>>()?;
    table = table.row(Row::from_samples("direct", "ms", &boots)?.counting("boots").group("boot"));
    if let Some(peer) = &peer {
        let boots = (0..PEER_BOOTS).map(|_| peer.boot()).collect::<Result<Vec<_>>>()?;
        let figures = Row::from_samples("uml", "ms", &boots)?.counting("boots").group("boot");
        table = table.row(note(figures, "uml"));
    }
    table.write(results)?;
    Ok(())
}

fn program(image: &Path, words: &[&str]) -> Result<String> {
    let mut command = Command::new(product::file("kyozon-linux")?);
    process::run_ok(command.env("KYOZON_LINUX", image).args(words), LIMIT)
}

/// The program for the host, under `kyozon exec`: with all that the library can serve, and a file in its memory.
fn unmodified(image: &Path) -> Result<String> {
    let mut command = Command::new(product::file("kyozon-linux-exec")?);
    command.args(["--library", "all", "--mount", "none:/memory:tmpfs", "--kernel"]).arg(image);
    command.arg("--").arg(product::file("kyozon-linux")?);
    process::run_ok(command.args(["bench-syscalls", "native", "/memory"]), LIMIT)
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
