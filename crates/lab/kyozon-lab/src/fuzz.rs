//! The fuzzers of `fuzz/`: built with the installed toolchain, run for a limited time, with totals over all runs.
//!
//! cargo-fuzz only adds a few compiler flags, and without a sanitizer stable compilers accept them. So it is not needed
//! here; `cargo fuzz run TARGET -s none` works as well.

use crate::{cache, jobs, process};
use anyhow::{anyhow, ensure, Context, Result};
use regex::Regex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Names of the targets and of their binaries.
const TARGETS: [&str; 9] =
    ["elf", "spsc", "mpmc", "block", "net", "registers", "frames", "commands", "typed"];
/// Seconds of each target in every run of the suite: about a minute in all.
const SHORT: u64 = 10;
/// Seconds of each target in the nightly run.
const LONG: u64 = 600;
/// Time limit of the build.
const BUILD: Duration = Duration::from_secs(1800);
/// The host's target. Naming it keeps the instrumentation out of build scripts and macros.
const HOST: &str = "x86_64-unknown-linux-gnu";
/// LLVM's SanitizerCoverage: counters, a table of program counters, and comparisons.
const FLAGS: &str = "--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Totals of one target over all runs.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Total {
    /// Seconds of fuzzing.
    seconds: u64,
    /// Inputs tried.
    inputs: u64,
    /// Runs that ended with a broken input.
    broken: u64,
    /// The seed of each run.
    seeds: Vec<u32>,
}

fn folder() -> Result<PathBuf> {
    Ok(cache::root()?.join("fuzz"))
}

fn totals(folder: &Path) -> Result<BTreeMap<String, Total>> {
    match fs::read_to_string(folder.join("totals.json")) {
        Ok(text) => serde_json::from_str(&text).context("fuzz/totals.json in the cache"),
        Err(_) => Ok(BTreeMap::new()),
    }
}

fn write_totals(folder: &Path, all: &BTreeMap<String, Total>) -> Result<()> {
    cache::write(&folder.join("totals.json"), &serde_json::to_vec_pretty(all)?)
}

/// The number of inputs, from libFuzzer's last line.
fn inputs(output: &str) -> Option<u64> {
    let done = Regex::new(r"(?m)^Done (\d+) runs in \d+ second").ok()?;
    done.captures(output)?[1].parse().ok()
}

fn build(tree: &Path, cargo: &mut Command, target: &Path) -> Result<()> {
    cargo.current_dir(tree.join("fuzz")).env("CARGO_TARGET_DIR", target).env("RUSTFLAGS", FLAGS);
    cargo.args(["build", "--locked", "--quiet", "--release", "--bins", "--target", HOST]);
    process::run_ok(cargo, BUILD).map(drop).context("the fuzzers do not compile")
}

/// Runs one target for `seconds`.
fn run(binary: &Path, folder: &Path, target: &str, seconds: u64) -> Result<Total> {
    let corpus = folder.join("corpus").join(target);
    let broken = folder.join("broken").join(target);
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&broken)?;
    if target == "elf" {
        // A real image as the first input leads deeper into the parser. Without one, the fuzzer starts from nothing.
        let _ = fs::copy(cache::root()?.join("product/hello.elf"), corpus.join("hello.elf"));
    }
    let seed = SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_nanos().max(1);
    let mut command = Command::new(binary);
    command.args([format!("-max_total_time={seconds}"), format!("-seed={seed}")]);
    command.args(["-timeout=10", "-print_final_stats=0", "-verbosity=1"]);
    command.arg(format!("-artifact_prefix={}/", broken.display())).arg(&corpus);
    let finished = process::run(&mut command, Duration::from_secs(seconds + 120))?;
    let inputs = inputs(&finished.stderr);
    let fine = finished.status.success() && inputs.is_some();
    if !fine {
        eprint!("{}", finished.stderr);
    }
    let inputs = inputs.unwrap_or(0);
    Ok(Total { seconds, inputs, broken: u64::from(!fine), seeds: vec![seed] })
}

/// Builds and runs all targets, and returns the totals as a line. `cargo` is a command without arguments.
pub fn check(tree: &Path, mut cargo: Command, long: bool) -> Result<String> {
    let folder = folder()?;
    let target = cache::root()?.join("target/fuzz");
    build(tree, &mut cargo, &target)?;
    let seconds = if long { LONG } else { SHORT };
    let mut all = totals(&folder)?;
    let mut broken = Vec::new();
    let mut failed = Ok(());
    jobs::run(
        &TARGETS,
        jobs::cpus(),
        |_| 1,
        || true,
        |name| run(&target.join(HOST).join("release").join(name), &folder, name, seconds),
        |_| (),
        |name, returned| {
            let done = match returned.unwrap_or_else(|| Err(anyhow!("the thread panicked"))) {
                Ok(done) => done,
                Err(error) => return failed = Err(error.context(*name)),
            };
            if done.broken > 0 {
                broken.push(*name);
            }
            let total = all.entry((*name).to_owned()).or_default();
            total.seconds += done.seconds;
            total.inputs += done.inputs;
            total.broken += done.broken;
            total.seeds.extend(done.seeds);
            if let Err(error) = write_totals(&folder, &all) {
                failed = Err(error);
            }
        },
    );
    failed?;
    let at = folder.display();
    ensure!(broken.is_empty(), "{}: broken by the inputs in {at}/broken", broken.join(", "));
    let min = all.values().map(|total| total.seconds).min().unwrap_or(0);
    let inputs: u64 = all.values().map(|total| total.inputs).sum();
    Ok(format!("so far {} minutes of each target, {inputs} inputs, see {at}/totals.json", min / 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_read_from_the_last_line() {
        assert_eq!(inputs("#7 NEW\nDone 164075 runs in 4 second(s)\n"), Some(164_075));
        assert_eq!(inputs("==1== ERROR: libFuzzer: deadly signal\n"), None);
    }

    #[test]
    fn targets_match_the_folder() {
        let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let mut files: Vec<_> = fs::read_dir(tree.join("fuzz/targets"))
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        files.sort();
        let mut names = TARGETS.to_vec();
        names.sort_unstable();
        assert_eq!(files, names);
        let manifest = fs::read_to_string(tree.join("fuzz/Cargo.toml")).unwrap();
        assert!(names
            .iter()
            .all(|name| manifest.contains(&format!("path = \"targets/{name}.rs\""))));
    }
}
