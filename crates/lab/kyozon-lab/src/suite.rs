//! Every test of the project, one total.

use crate::scenario::{cases, Case, Ending};
use crate::{cache, fuzz, jobs, process};
use anyhow::{anyhow, bail, ensure, Context, Result};
use regex::Regex;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use std::{env, fs};

const LIMIT: Duration = Duration::from_secs(3600);

/// The most CPUs that guests have at a time: each guest also takes up to 1 GiB of memory.
const MOST_CPUS: usize = 4;

/// What `kyozon-lab test` takes.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Run only tests whose name contains one of these
    names: Vec<String>,
    /// Print the names and what they show, run nothing
    #[arg(long)]
    list: bool,
    /// Also run what takes long
    #[arg(long)]
    nightly: bool,
}

/// What one entry of the suite counted.
#[derive(Debug, Default, PartialEq)]
struct Count {
    passed: usize,
    failed: usize,
    skipped: usize,
}

type Check = fn(&Path) -> Result<(Count, String)>;

/// What needs no guest, cheapest first.
const CHECKS: [(&str, &str, Check); 7] = [
    ("format", "the source is formatted", format),
    ("lint", "clippy finds nothing, in any crate", lint),
    (
        "licences",
        "every dependency's licence is on the list, and kernel code stays apart",
        licences,
    ),
    (
        "headers",
        "kernel code, and what links it, says GPL-2.0-only; all else the workspace's licence",
        spdx,
    ),
    ("text", "every file that is kept is text: no program is among them", text),
    ("bare-metal", "what runs beside Linux builds without an operating system", bare_metal),
    ("unit", "unit tests of every crate", unit),
];

/// What takes a minute, and with `--nightly` an hour.
const FUZZ: (&str, &str) = ("fuzz", "no input breaks what parses bytes of strangers");

/// What takes minutes, and a toolchain that few have: with `--nightly`.
const MIRI: (&str, &str) = ("miri", "rings and locks do nothing that Rust leaves undefined");

/// Runs the suite; the last line is the total.
pub fn run(options: &Options) -> Result<ExitCode> {
    let tree = cache::tree()?;
    let wanted = |name: &str| {
        options.names.is_empty() || options.names.iter().any(|part| name.contains(part.as_str()))
    };
    let mut cases = cases(&tree.join("tests"))?;
    cases.retain(|case| wanted(&case.name) && (options.nightly || !case.is_extra()));
    let checks: Vec<_> = CHECKS.iter().filter(|(name, ..)| wanted(name)).collect();
    let fuzzes = wanted(FUZZ.0);
    let interprets = options.nightly && wanted(MIRI.0);
    ensure!(
        !cases.is_empty() || !checks.is_empty() || fuzzes || interprets,
        "no test is named {:?}; --list shows the names",
        options.names
    );
    if options.list {
        checks.iter().for_each(|(name, about, _)| println!("{name}: {about}"));
        for ((name, about), _) in [(FUZZ, fuzzes), (MIRI, interprets)].iter().filter(|(_, on)| *on)
        {
            println!("{name}: {about}");
        }
        cases.iter().for_each(|case| println!("{}: {}", case.name, case.about));
        return Ok(ExitCode::SUCCESS);
    }
    let mut total = Count::default();
    for (name, _, check) in checks {
        announce(name);
        let before = Instant::now();
        total.add(name, before, check(&tree));
    }
    if fuzzes {
        announce(FUZZ.0);
        let before = Instant::now();
        total.add(FUZZ.0, before, fuzzers(&tree, options.nightly));
    }
    if interprets {
        announce(MIRI.0);
        let before = Instant::now();
        total.add(MIRI.0, before, miri(&tree));
    }
    // Those that take few CPUs first: a wide one waits until all are free.
    cases.sort_by_key(Case::cpus);
    jobs::run(
        &cases,
        jobs::cpus().min(MOST_CPUS),
        Case::cpus,
        |case| (Instant::now(), case.run(options.nightly)),
        |running| match running {
            [one] => announce(&one.name),
            [first, rest @ ..] => announce(&format!("{} and {} more", first.name, rest.len())),
            [] => (),
        },
        |case, returned| {
            let (before, outcome) =
                returned.unwrap_or_else(|| (Instant::now(), Err(anyhow!("it panicked"))));
            let outcome = outcome.map(|ending| match ending {
                Ending::Passed => (Count { passed: 1, ..Count::default() }, String::new()),
                Ending::Skipped(why) => skipped(why),
            });
            total.add(&case.name, before, outcome);
        },
    );
    println!("{} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped);
    Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// On a terminal, says what is running; a log has the results only.
fn announce(name: &str) {
    on_terminal(&format!("        {name} ..."));
}

/// Puts `text` in place of the line at the cursor.
fn on_terminal(text: &str) {
    use std::io::{stderr, IsTerminal};
    if stderr().is_terminal() {
        eprint!("\r\x1b[K{text}\r");
    }
}

impl Count {
    fn add(&mut self, name: &str, before: Instant, outcome: Result<(Count, String)>) {
        let (count, note) = outcome.unwrap_or_else(|error| {
            let text = format!("{error:#}");
            (Count { failed: 1, ..Count::default() }, text)
        });
        let word = match count {
            Count { failed: 1.., .. } => "FAILED ",
            Count { passed: 0, .. } => "skipped",
            _ => "ok     ",
        };
        let note = if note.is_empty() { note } else { format!(": {note}") };
        on_terminal("");
        println!("{word} {name} ({:.1} s){note}", before.elapsed().as_secs_f64());
        self.passed += count.passed;
        self.failed += count.failed;
        self.skipped += count.skipped;
    }
}

fn skipped(why: &str) -> (Count, String) {
    (Count { skipped: 1, ..Count::default() }, why.to_owned())
}

fn cargo(tree: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(tree).env_remove("RUSTFLAGS").env("CARGO_TERM_COLOR", "never");
    command
}

/// Runs a tool that passes by ending with 0. Where it fails, all that it said goes to standard error.
fn tool(command: &mut Command) -> Result<(Count, String)> {
    let finished = process::run(command, LIMIT)?;
    if !finished.status.success() {
        eprint!("{}{}", finished.stdout, finished.stderr);
        let line = finished.stderr.lines().find(|line| line.starts_with("error"));
        bail!("{}", line.unwrap_or("see above"));
    }
    Ok((Count { passed: 1, ..Count::default() }, String::new()))
}

/// Whether a tool is there and runs: rustup has names for tools that it does not have.
fn works(command: &mut Command) -> bool {
    process::run(command, LIMIT).is_ok_and(|finished| finished.status.success())
}

fn format(tree: &Path) -> Result<(Count, String)> {
    if !works(cargo(tree).args(["fmt", "--version"])) {
        return Ok(skipped("rustfmt is not installed"));
    }
    tool(cargo(tree).args(["fmt", "--all", "--check"]))
}

fn lint(tree: &Path) -> Result<(Count, String)> {
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
    // What exists on the bare machine only. An image's assembly must not be linked with another's: one at a time.
    for (package, feature) in IMAGES {
        let mut bare = cargo(tree);
        bare.args(["clippy", "--locked", "--target", "x86_64-unknown-none"]);
        bare.args(env::var("KYOZON_BUILD_STD").unwrap_or_default().split_whitespace());
        bare.args(["-p", package, "--features", feature, "--", "-D", "warnings"]);
        tool(&mut bare)
            .with_context(|| format!("{package} with {feature}, on the bare machine"))?;
    }
    for package in UNIKERNELS {
        let mut guest = cargo(tree);
        // As images are: without a C library nothing can unwind.
        guest.args(["clippy", "--locked", "--release", "--target", "x86_64-unknown-linux-gnu"]);
        guest.args(["-p", package, "--no-default-features", "--features", "image"]);
        tool(guest.args(["--", "-D", "warnings"]))
            .with_context(|| format!("{package} as a unikernel"))?;
    }
    Ok((Count { passed: 1, ..Count::default() }, String::new()))
}

/// Packages of unikernels, which are compiled for the host's target.
const UNIKERNELS: [&str; 5] = [
    "kyozon-kv",
    "kyozon-shm",
    "kyozon-unikernel-c",
    "kyozon-unikernel-examples",
    "kyozon-unikernel-test",
];

/// Packages with images, and the features that bring them.
const IMAGES: [(&str, &str); 6] = [
    ("kyozon-colocation", "image"),
    ("kyozon-colocation", "svm"),
    ("kyozon-colocation", "alone"),
    ("kyozon-microkernel", "image"),
    ("kyozon-cokernel-test", "image"),
    ("kyozon-task-test", "image"),
];

fn licences(tree: &Path) -> Result<(Count, String)> {
    let Some(deny) = env::var_os("KYOZON_CARGO_DENY").filter(|path| Path::new(path).is_file())
    else {
        return Ok(skipped("cargo-deny could not be installed"));
    };
    tool(
        Command::new(deny)
            .args(["--offline", "check", "licenses", "bans", "sources"])
            .current_dir(tree),
    )
}

fn spdx(tree: &Path) -> Result<(Count, String)> {
    let is_manifest = |file: &str| file.ends_with("/Cargo.toml");
    for (file, text) in kept(tree, "crates")?.into_iter().filter(|(file, _)| is_manifest(file)) {
        let wanted = "license.workspace = true";
        ensure!(String::from_utf8_lossy(&text).contains(wanted), "{file} does not say {wanted}");
    }
    let mut passed = 0;
    for (file, text) in kept(tree, "linux")? {
        let top = String::from_utf8_lossy(&text).lines().take(2).collect::<String>();
        ensure!(
            top.contains("SPDX-License-Identifier: GPL-2.0-only"),
            "{file} does not say SPDX-License-Identifier: GPL-2.0-only in its first two lines"
        );
        passed += 1;
    }
    Ok(of_files(passed))
}

/// Files below a folder that git keeps, or would, and what they say.
fn kept(tree: &Path, folder: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let mut git = Command::new("git");
    let which = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", folder];
    let files = process::run_ok(git.args(which).current_dir(tree), LIMIT)?;
    let is_file = |name: &&str| tree.join(name).symlink_metadata().is_ok_and(|m| m.is_file());
    let there = files.split_terminator('\0').filter(is_file);
    there
        .map(|file| Ok((file.to_owned(), fs::read(tree.join(file)).context(file.to_owned())?)))
        .collect()
}

fn of_files(passed: usize) -> (Count, String) {
    let count = Count { passed: passed.min(1), skipped: usize::from(passed == 0), failed: 0 };
    (count, format!("{passed} files"))
}

fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}

fn text(tree: &Path) -> Result<(Count, String)> {
    let files = kept(tree, ".")?;
    for (file, text) in &files {
        ensure!(is_text(text), "{file} is no text");
    }
    Ok(of_files(files.len()))
}

/// The crates that run without an operating system.
const BARE: [&str; 8] =
    ["abi", "channel", "colocation", "microkernel", "task", "monitor", "monitor-task", "unikernel"];

fn bare_metal(tree: &Path) -> Result<(Count, String)> {
    let mut command = cargo(tree);
    command.args(["build", "--locked", "--release", "--lib", "--target", "x86_64-unknown-none"]);
    command.args(env::var("KYOZON_BUILD_STD").unwrap_or_default().split_whitespace());
    command.args(BARE.iter().flat_map(|name| ["-p".to_owned(), format!("kyozon-{name}")]));
    tool(&mut command)
}

fn unit(tree: &Path) -> Result<(Count, String)> {
    let finished = process::run(
        cargo(tree).args(["test", "--locked", "--workspace", "--no-fail-fast"]),
        LIMIT,
    )?;
    let count = count_results(&finished.stdout)?;
    if !finished.status.success() {
        eprint!("{}{}", finished.stdout, finished.stderr);
        // A test that does not compile is counted by nobody else.
        return Ok((Count { failed: count.failed.max(1), ..count }, "see above".into()));
    }
    ensure!(count.passed > 0, "no unit test ran");
    let note = format!("{} tests", count.passed);
    Ok((count, note))
}

/// A minute, and longer where that is wanted.
fn fuzzers(tree: &Path, long: bool) -> Result<(Count, String)> {
    if !works(Command::new("c++").arg("--version")) {
        return Ok(skipped(
            "libFuzzer needs a C++ compiler; the unit tests run its targets on inputs of their own",
        ));
    }
    let said = fuzz::check(tree, cargo(tree), long)?;
    Ok((Count { passed: 1, ..Count::default() }, said))
}

/// The unit tests of what is shared, interpreted.
fn miri(tree: &Path) -> Result<(Count, String)> {
    if !works(Command::new("cargo").args(["+nightly", "miri", "--version"])) {
        return Ok(skipped(
            "there is no Miri: rustup toolchain install nightly -c miri -c rust-src",
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
    // Locks look at the clock.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation");
    let said = process::run_ok(&mut command, LIMIT)?;
    Ok((count_results(&said)?, String::new()))
}

fn count_results(stdout: &str) -> Result<Count> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_add_up() {
        let text = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\nnoise\ntest result: FAILED. 1 passed; 2 failed; 0 ignored\n";
        assert_eq!(count_results(text).unwrap(), Count { passed: 4, failed: 2, skipped: 1 });
    }

    #[test]
    fn a_program_is_no_text() {
        assert!(is_text("共存\n".as_bytes()) && is_text(b""));
        assert!(!is_text(b"\x7fELF\x02\x01\x01\0") && !is_text(b"caf\xe9"));
        let tree = Path::new(env!("CARGO_MANIFEST_DIR"));
        let files = kept(tree, "src").unwrap();
        assert!(files.iter().any(|(name, text)| name == "src/suite.rs" && is_text(text)));
    }

    #[test]
    fn a_failure_is_counted() {
        let mut total = Count::default();
        total.add("x", Instant::now(), Err(anyhow::anyhow!("no")));
        total.add("y", Instant::now(), Ok(skipped("why")));
        assert_eq!(total, Count { passed: 0, failed: 1, skipped: 1 });
    }
}
