//! Table `net`: the library's network stack over a TAP device, against the host's own between two namespaces.
//!
//! The example `net-speed` of liblinux takes the samples.

use super::described;
use crate::{cache, process, product};
use anyhow::{bail, ensure, Context, Result};
use kyozon_results::{Row, Table};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

/// Rounds. In each, every variant takes every sample once; odd rounds reverse the order.
const ROUNDS: &str = "19";
/// Milliseconds of a sample.
const SAMPLE: &str = "200";
/// Time limit of all rounds.
const LIMIT: Duration = Duration::from_secs(1200);
const VARIANTS: [&str; 2] = ["library", "native"];

/// The first requirement that this machine lacks.
pub fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("root, to create namespaces and TAP devices".into());
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("/dev/net/tun".into());
    }
    let found = |program: &str| {
        process::run(Command::new(program).arg("-V"), Duration::from_secs(20)).is_ok()
    };
    let missing = ["ip", "tc"].into_iter().find(|program| !found(program));
    missing.map(|program| format!("{program}: apt-get install iproute2"))
}

/// The samples of one variant: MB/s or microseconds, and CPU time.
#[derive(Default)]
struct Taken {
    figures: Vec<f64>,
    cpu: Vec<f64>,
    /// The part of it outside the host's kernel.
    programs: Vec<f64>,
    /// Calls of the TAP device, and nanoseconds in them.
    calls: Vec<f64>,
    inside: Vec<f64>,
}

/// Conditions that have a group of rows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    path: String,
    test: String,
    bytes: usize,
}

impl Group {
    fn label(&self) -> String {
        let Self { path, test, bytes } = self;
        format!("{path}, {test}, {bytes} {}", if *bytes == 1 { "byte" } else { "bytes" })
    }
}

/// The samples in the program's output.
fn parse(output: &str) -> Result<BTreeMap<Group, [Taken; VARIANTS.len()]>> {
    let mut groups = BTreeMap::<Group, [Taken; VARIANTS.len()]>::new();
    for line in output.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let [path, test, bytes, variant, figure, cpu, programs, calls, inside] = words[..] else {
            bail!("the line {line:?} has not nine words");
        };
        let at = VARIANTS.iter().position(|name| *name == variant);
        let at = at.with_context(|| format!("the line {line:?} names an unknown variant"))?;
        let group = Group { path: path.into(), test: test.into(), bytes: bytes.parse()? };
        let taken = &mut groups.entry(group).or_default()[at];
        taken.figures.push(figure.parse()?);
        taken.cpu.push(cpu.parse()?);
        taken.programs.push(programs.parse()?);
        taken.calls.push(calls.parse()?);
        taken.inside.push(inside.parse()?);
    }
    Ok(groups)
}

/// Adds the rows of one group.
fn rows(mut table: Table, group: &Group, taken: &[Taken; VARIANTS.len()]) -> Result<Table> {
    let (unit, column) = if group.test.starts_with("TCP_RR") {
        ("us", "CPU ns each")
    } else {
        ("MB/s", "CPU ns/KiB")
    };
    let label = group.label();
    let [library, native] = taken;
    ensure!(library.figures.len() == native.figures.len(), "{label}: a sample is missing");
    for (name, Taken { figures, cpu, programs, calls, inside }) in VARIANTS.iter().zip(taken) {
        let mut row = Row::from_samples(name, unit, figures)?;
        let tap = [("TAP calls", calls), ("ns in TAP calls", inside)];
        for (column, values) in [(column, cpu), ("outside the host's kernel", programs)]
            .into_iter()
            .chain(tap.into_iter().filter(|_| *name == "library"))
        {
            row = row.extra(column, Row::from_samples(name, "", values)?.median);
        }
        table = table.row(row.group(&label));
    }
    for (name, over, under) in [
        ("library : native", &library.figures, &native.figures),
        ("CPU, library : native", &library.cpu, &native.cpu),
    ] {
        table = table.row(Row::ratio(name, over, under)?.group(&label));
    }
    Ok(table)
}

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    if let Some(what) = missing() {
        bail!("needs {what}");
    }
    let program = program()?;
    let table = described(results, "net")?;
    let mut command = Command::new(program);
    command.arg(product::file("linux.elf")?).args([ROUNDS, SAMPLE]);
    let output = process::run_ok(&mut command, LIMIT)?;
    let groups = parse(&output)?;
    let table = groups.iter().try_fold(table, |table, (group, taken)| rows(table, group, taken))?;
    table.write(results)?;
    Ok(())
}

/// The program that takes the samples.
fn program() -> Result<PathBuf> {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut build = Command::new(cargo);
    build.current_dir(cache::tree()?);
    build.args(["build", "--locked", "--quiet", "--release"]);
    build.args(["--target", "x86_64-unknown-linux-gnu", "-p", "liblinux"]);
    build.args(["--example", "net-speed"]);
    process::run_ok(&mut build, Duration::from_secs(600))?;
    let target = env::var_os("CARGO_TARGET_DIR")
        .context("CARGO_TARGET_DIR is not set: run through make, or read the cache's env")?;
    let target = PathBuf::from(target);
    let program = target.join("x86_64-unknown-linux-gnu/release/examples/net-speed");
    ensure!(fs::metadata(&program).is_ok(), "{}: not found", program.display());
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_by_group_and_variant() {
        let output = "direct TCP_RR 1 native 4.0 3900 400 0 0\n\
                      direct TCP_RR 1 library 6.0 7800 3000 2 1500\n\
                      direct TCP_STREAM 64 library 100.0 10 5 1 2\n\
                      direct TCP_STREAM 64 native 50.0 20 5 0 0\n";
        let groups = parse(output).unwrap();
        let labels: Vec<_> = groups.keys().map(Group::label).collect();
        assert_eq!(labels, ["direct, TCP_RR, 1 byte", "direct, TCP_STREAM, 64 bytes"]);
        let (group, taken) = groups.first_key_value().unwrap();
        let table = rows(Table::new("net", "t", "e", "c"), group, taken).unwrap();
        let ratios: Vec<_> = table.rows[2..].iter().map(|row| row.median).collect();
        assert_eq!(ratios, [1.5, 2.0]);
        assert_eq!(table.rows[0].extra["CPU ns each"], 7800.0);
        assert_eq!(table.rows[0].extra["outside the host's kernel"], 3000.0);
        let tap = ["TAP calls", "ns in TAP calls"].map(|name| table.rows[0].extra[name]);
        assert_eq!((tap, table.rows[1].extra.contains_key("TAP calls")), ([2.0, 1500.0], false));
        assert!(parse("direct TCP_RR 1 other 4.0 3900 1 0 0").is_err() && parse("a b").is_err());
    }

    #[test]
    fn a_missing_sample_is_an_error() {
        let groups = parse("direct TCP_RR 1 native 4.0 3900 1 0 0\n").unwrap();
        let (group, taken) = groups.first_key_value().unwrap();
        assert!(rows(Table::new("net", "t", "e", "c"), group, taken).is_err());
    }
}
