//! `make bench`: measures, writes `docs/results`, and checks the figures against their bounds.

mod alone;
mod as_guest;
mod cokernel;
mod costs;
mod crowd;
mod delay;
mod detection;
mod evasion;
mod exits;
mod fileio;
pub mod fresh;
mod ipc;
mod kv;
mod latency;
mod net;
mod overhead;
mod parallel;
mod restart;
mod shm;
mod start;
mod syscalls;
mod trip;
mod typed;
mod typed_calls;

use crate::kernels::{Kernel, SERIES};
use crate::{batch, cache, emulator, module, process, product, spec::Spec};
use anyhow::{ensure, Context, Result};
use kyozon_results::{check, parse_samples, prose, render, Row, Table};
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Options of `kyozon-lab bench`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Tables to measure [default: all]
    tables: Vec<String>,
    /// Also fail if a figure is outside the bounds beside its table
    #[arg(long)]
    check: bool,
    /// Measure nothing: write the pages and plots again from the JSON files
    #[arg(long, conflicts_with = "tables")]
    render: bool,
}

type Measure = fn(&Path) -> Result<()>;

/// Every table, by name.
const TABLES: [(&str, Measure); 21] = [
    ("lab", lab),
    ("latency", latency::measure),
    ("trip", trip::measure),
    ("ipc", ipc::measure),
    ("interrupt-delay", delay::measure),
    ("overhead", overhead::measure),
    ("detection", detection::measure),
    ("evasion", evasion::measure),
    ("crowd", crowd::measure),
    ("restart", restart::measure),
    ("guest", as_guest::measure),
    ("exits", exits::measure),
    ("shm", shm::measure),
    ("start", start::measure),
    ("parallel", parallel::measure),
    ("kv", kv::measure),
    ("syscalls", syscalls::measure),
    ("fileio", fileio::measure),
    ("net", net::measure),
    ("typed-calls", typed_calls::measure),
    ("typed", typed::measure),
];

/// Measures the named tables, writes them, and renders all pages.
pub fn run(options: &Options) -> Result<ExitCode> {
    let results = cache::tree()?.join("docs/results");
    for name in &options.tables {
        let names = TABLES.map(|(name, _)| name);
        ensure!(
            names.contains(&name.as_str()),
            "no table is named {name:?}: the tables are {}",
            names.join(", ")
        );
    }
    let wanted =
        |name: &str| options.tables.is_empty() || options.tables.iter().any(|table| table == name);
    for (name, measure) in TABLES.iter().filter(|(name, _)| !options.render && wanted(name)) {
        let missing = match *name {
            "kv" => kv::missing(),
            "fileio" => fileio::missing(),
            "net" => net::missing(),
            "typed" => typed::missing(),
            _ => None,
        };
        if let (true, Some(what)) = (options.tables.is_empty(), missing) {
            eprintln!("not measuring {name}: needs {what}");
            continue;
        }
        eprintln!("measuring {name} ...");
        measure(&results).with_context(|| format!("table {name}"))?;
    }
    render(&results)?;
    let tree = cache::tree()?;
    for (page, text) in prose(&tree, &results)? {
        fs::write(tree.join(&page), text).with_context(|| page)?;
    }
    println!("{}", results.join("README.md").display());
    if options.check {
        let report = check(&results, None)?;
        println!("{report}");
        if !report.passed() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Begins the table `name` with its title and explanation from `results/pages.toml`.
fn described(results: &Path, name: &str) -> Result<Table> {
    Ok(Table::described(results, name, &format!("make bench TABLES={name}"))?)
}

/// A program's output, samples in nanoseconds, as microseconds.
fn micros(output: &str) -> Result<Vec<f64>> {
    Ok(parse_samples(output)?.into_iter().map(|ns| ns as f64 / 1000.0).collect())
}

/// How much more than `base` a figure is, in per cent rounded to three digits after the point.
fn slower_percent(figure: f64, base: f64) -> f64 {
    ((figure / base - 1.0) * 100.0 * 1000.0).round() / 1000.0
}

/// The operator's command, with the folder of its images.
pub fn kyozon() -> Result<Command> {
    let program = product::file("kyozon")?;
    let mut command = Command::new(&program);
    command.env("KYOZON_IMAGES", program.parent().context("a folder")?);
    Ok(command)
}

/// QEMU's version.
pub fn qemu_version() -> Result<String> {
    let text = process::run_ok(emulator::qemu().arg("--version"), Duration::from_secs(20))?;
    let word = text.split_whitespace().skip_while(|word| *word != "version").nth(1);
    Ok(word.context("no version in the output of QEMU's --version")?.to_owned())
}

/// Table `lab`: boot and module load, in instructions.
fn lab(results: &Path) -> Result<()> {
    const RUNS: usize = 3;
    let mut table = described(results, "lab")?.version("qemu", &qemu_version()?);
    for series in SERIES {
        let kernel = Kernel::fetch(series, "cloud", false)?;
        let built = module::build(&cache::tree()?.join("tests/lab/hello"), &kernel)?;
        let spec = Spec::new(&kernel).file("/m/hello.ko", 0o644, fs::read(&built.file)?);
        let (mut boot, mut load) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let run = batch::run(&spec, &["insmod /m/hello.ko"], Duration::from_secs(300))?;
            run.outputs[0].expect_success()?;
            boot.push(run.booted_tsc);
            load.push(run.outputs[0].ticks());
        }
        table = table.version(&format!("linux {series}"), &kernel.version);
        table = table.row(Row::from_samples(&format!("boot {series}"), "instructions", &boot)?);
        table = table.row(Row::from_samples(&format!("insmod {series}"), "instructions", &load)?);
    }
    table.write(results)?;
    Ok(())
}

#[cfg(test)]
mod tests;
