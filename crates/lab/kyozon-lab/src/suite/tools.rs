//! Checks that run a tool: cargo and its commands, clippy, cargo-deny, Miri, the fuzzers.

use super::report::Count;
use super::{one_passed, skipped, Outcome, LIMIT};
use crate::bench::fresh;
use crate::{fuzz, process, storm};
use anyhow::{bail, ensure, Context, Result};
use regex::Regex;
use std::env;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Cargo, to be run in the source tree.
pub(crate) fn cargo(tree: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(tree).env_remove("RUSTFLAGS").env("CARGO_TERM_COLOR", "never");
    command
}

/// Runs a tool that passes by ending with status 0. If it fails, its output goes to standard error.
fn tool(command: &mut Command) -> Result<Outcome> {
    let finished = process::run(command, LIMIT)?;
    if !finished.status.success() {
        eprint!("{}{}", finished.stdout, finished.stderr);
        let line = finished.stderr.lines().find(|line| line.starts_with("error"));
        bail!("{}", line.unwrap_or("see above"));
    }
    Ok(one_passed(""))
}

/// Whether a tool is installed and runs: rustup has proxies also for tools that are not installed.
fn works(command: &mut Command) -> bool {
    process::run(command, LIMIT).is_ok_and(|finished| finished.status.success())
}

/// The source is as rustfmt leaves it.
pub(super) fn format(tree: &Path, _nightly: bool) -> Result<Outcome> {
    if !works(cargo(tree).args(["fmt", "--version"])) {
        return Ok(skipped("rustfmt is not installed"));
    }
    tool(cargo(tree).args(["fmt", "--all", "--check"]))
}

/// Clippy reports nothing, in the workspace and in the code for other targets.
pub(super) fn lint(tree: &Path, _nightly: bool) -> Result<Outcome> {
    if !works(cargo(tree).args(["clippy", "--version"])) {
        return Ok(skipped("clippy is not installed"));
    }
    tool(cargo(tree).args([
        "clippy",
        "--locked",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    // Code that exists on bare metal only. One image's assembly must not be linked with another's: one at a time.
    for (package, feature) in IMAGES {
        let mut bare = cargo(tree);
        bare.args(["clippy", "--locked", "--target", "x86_64-unknown-none"]);
        bare.args(env::var("KYOZON_BUILD_STD").unwrap_or_default().split_whitespace());
        bare.args(["-p", package, "--features", feature, "--", "-D", "warnings"]);
        tool(&mut bare).with_context(|| format!("{package} with {feature}, on bare metal"))?;
    }
    for package in UNIKERNELS {
        let mut guest = cargo(tree);
        // As the images are built: without a C library nothing can unwind.
        guest.args(["clippy", "--locked", "--release", "--target", "x86_64-unknown-linux-gnu"]);
        guest.args(["-p", package, "--no-default-features", "--features", "image"]);
        tool(guest.args(["--", "-D", "warnings"]))
            .with_context(|| format!("{package} as a unikernel"))?;
    }
    Ok(one_passed(""))
}

/// Packages with unikernels, which are compiled for the host's target.
const UNIKERNELS: [&str; 5] = [
    "kyozon-kv",
    "kyozon-shm",
    "kyozon-unikernel-c",
    "kyozon-unikernel-examples",
    "kyozon-unikernel-test",
];

/// Packages with code for bare metal only, and the feature that adds it, if it takes one.
const IMAGES: [(&str, &str); 8] = [
    ("kyozon-colocation", "image"),
    ("kyozon-colocation", "svm"),
    ("kyozon-colocation", "alone"),
    ("kyozon-microkernel", "image"),
    ("kyozon-cokernel-test", "image"),
    ("kyozon-task-test", "image"),
    ("kyozon-text-sum", "image"),
    ("kyozon-typed-kernel", ""),
];

/// No dependency has a known vulnerability; cargo-deny needs the network for the list of them.
pub(super) fn advisories(tree: &Path, _nightly: bool) -> Result<Outcome> {
    let Some(deny) = env::var_os("KYOZON_CARGO_DENY").filter(|path| Path::new(path).is_file())
    else {
        return Ok(skipped("cargo-deny is not installed: run make soak with a network"));
    };
    tool(Command::new(deny).arg("check").current_dir(tree))
}

/// The crates that run without an operating system.
const BARE: [&str; 11] = [
    "abi",
    "channel",
    "colocation",
    "microkernel",
    "task",
    "monitor",
    "monitor-task",
    "typed-checker",
    "typed-kernel",
    "typed-manifest",
    "unikernel",
];

/// The bare-metal crates build without an operating system.
pub(super) fn bare_metal(tree: &Path, _nightly: bool) -> Result<Outcome> {
    let mut command = cargo(tree);
    command.args(["build", "--locked", "--release", "--lib", "--target", "x86_64-unknown-none"]);
    command.args(env::var("KYOZON_BUILD_STD").unwrap_or_default().split_whitespace());
    command.args(BARE.iter().flat_map(|name| ["-p".to_owned(), format!("kyozon-{name}")]));
    tool(&mut command)
}

/// The unit tests of the workspace.
pub(super) fn unit(tree: &Path, _nightly: bool) -> Result<Outcome> {
    let finished = process::run(
        cargo(tree).args(["test", "--locked", "--workspace", "--no-fail-fast"]),
        LIMIT,
    )?;
    let count = count_results(&finished.stdout)?;
    if !finished.status.success() {
        eprint!("{}{}", finished.stdout, finished.stderr);
        // Cargo counts no test of a crate that does not compile.
        return Ok((Count { failed: count.failed.max(1), ..count }, "see above".into()));
    }
    ensure!(count.passed > 0, "no unit test ran");
    let note = format!("{} tests", count.passed);
    Ok((count, note))
}

/// Fuzzes each parser: a minute in all, or much longer in the nightly run.
pub(super) fn fuzzers(tree: &Path, nightly: bool) -> Result<Outcome> {
    if !works(Command::new("c++").arg("--version")) {
        return Ok(skipped(
            "libFuzzer needs a C++ compiler; the unit tests run its targets on inputs of their own",
        ));
    }
    let summary = fuzz::check(tree, cargo(tree), nightly)?;
    Ok(one_passed(&summary))
}

/// The unit tests of the shared-memory crate, interpreted by Miri.
pub(super) fn miri(tree: &Path, _nightly: bool) -> Result<Outcome> {
    if !works(Command::new("cargo").args(["+nightly", "miri", "--version"])) {
        return Ok(skipped(
            "Miri is not installed: rustup toolchain install nightly -c miri -c rust-src",
        ));
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| tree.join("target"), Into::into);
    let mut command = Command::new("cargo");
    command.args([
        "+nightly",
        "miri",
        "test",
        "--locked",
        "--quiet",
        "-p",
        "kyozon-channel",
        "--lib",
    ]);
    command.arg("--target-dir").arg(target.join("miri")).current_dir(tree);
    // Locks read the clock.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation");
    let output = process::run_ok(&mut command, LIMIT)?;
    Ok((count_results(&output)?, String::new()))
}

/// Half an hour of random privileged operations in guests behind the wall.
pub(super) fn storm(_tree: &Path, _nightly: bool) -> Result<Outcome> {
    let series = storm::series(Duration::from_secs(30 * 60))?;
    let note =
        format!("{} runs, in {} of which Linux reset the machine", series.survived, series.resets);
    Ok((Count { passed: series.survived, failed: series.failures.len(), skipped: 0 }, note))
}

/// The tables that repeat, measured again.
pub(super) fn tables(tree: &Path, _nightly: bool) -> Result<Outcome> {
    let (tables, differences) = fresh::compare(&tree.join("docs/results"))?;
    differences.iter().for_each(|line| eprintln!("{line}"));
    let note = format!("{tables} tables; make bench measures them again");
    Ok((Count { passed: 1, failed: differences.len(), skipped: 0 }, note))
}

/// Adds up the totals of `cargo test`.
pub(super) fn count_results(stdout: &str) -> Result<Count> {
    let pattern = Regex::new(r"(?m)^test result: .* (\d+) passed; (\d+) failed; (\d+) ignored")?;
    let mut count = Count::default();
    for found in pattern.captures_iter(stdout) {
        let number = |index: usize| found[index].parse::<usize>().context("a count");
        count.passed += number(1)?;
        count.failed += number(2)?;
        count.skipped += number(3)?;
    }
    Ok(count)
}
