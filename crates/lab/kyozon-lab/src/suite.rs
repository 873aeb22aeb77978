//! Every test of the project, with one total.
//!
//! Checks need no guest and run first, cheapest first: [`files`], [`links`] and [`style`] read the source tree,
//! [`dependencies`] asks cargo, [`tools`] runs compilers and their like. Scenarios ([`crate::scenario`]) follow, side
//! by side.

mod dependencies;
mod files;
mod links;
mod style;
mod tools;

use crate::scenario::{cases, Case, Ending};
use crate::{cache, jobs};
use anyhow::{anyhow, ensure, Result};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Time limit of one tool.
const LIMIT: Duration = Duration::from_secs(3600);

/// Maximum CPUs of all guests that run at a time: each guest also takes up to 1 GiB of memory.
const MAX_CPUS: usize = 4;

/// Options of `kyozon-lab test`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Run only tests whose name contains one of these
    names: Vec<String>,
    /// List the names with what each test shows, and run nothing
    #[arg(long)]
    list: bool,
    /// Also run tests that take long
    #[arg(long)]
    nightly: bool,
}

/// How many tests of one entry of the suite passed, failed and were skipped.
#[derive(Debug, Default, PartialEq)]
struct Count {
    passed: usize,
    failed: usize,
    skipped: usize,
}

/// The count of an entry that did not fail, and a note for its line.
type Outcome = (Count, String);

/// A test that needs no guest.
struct Check {
    name: &'static str,
    about: &'static str,
    nightly_only: bool,
    /// Runs it on the source tree; the flag asks for the longer, nightly run.
    run: fn(&Path, bool) -> Result<Outcome>,
}

impl Check {
    const fn new(
        name: &'static str,
        about: &'static str,
        run: fn(&Path, bool) -> Result<Outcome>,
    ) -> Self {
        Self { name, about, nightly_only: false, run }
    }
}

/// The checks, cheapest first. Fuzzing takes a minute, and in the nightly run an hour; Miri takes minutes and needs a
/// nightly toolchain.
const CHECKS: [Check; 14] = [
    Check::new("format", "the source is formatted", tools::format),
    Check::new("lint", "clippy reports nothing, in any crate", tools::lint),
    Check::new(
        "licences",
        "every dependency's licence is on the list, and kernel code stays apart",
        dependencies::licences,
    ),
    Check::new(
        "rust-version",
        "no dependency needs a newer Rust than the workspace says",
        dependencies::rust_version,
    ),
    Check::new(
        "headers",
        "kernel code and what links it states GPL-2.0-only; everything else the workspace's licence",
        files::headers,
    ),
    Check::new("text", "every committed file is text, none is a program", files::text),
    Check::new("style", "lines fit into 120 columns, and modes have one name each", style::check),
    Check::new("links", "files and functions that the documentation names exist", links::check),
    Check::new(
        "bare-metal",
        "crates that run beside Linux build without an operating system",
        tools::bare_metal,
    ),
    Check::new("unit", "unit tests of every crate", tools::unit),
    Check::new("fuzz", "no input breaks the parsers of untrusted bytes", tools::fuzzers),
    Check {
        nightly_only: true,
        ..Check::new(
            "advisories",
            "no dependency has a known vulnerability, and cargo-deny agrees on licences",
            tools::advisories,
        )
    },
    Check {
        nightly_only: true,
        ..Check::new("miri", "rings and locks have no undefined behaviour", tools::miri)
    },
    Check {
        nightly_only: true,
        ..Check::new(
            "storm",
            "random privileged operations inside Linux do not harm the cokernel behind the wall",
            tools::storm,
        )
    },
];

/// Runs the suite; the last line is the total.
pub fn run(options: &Options) -> Result<ExitCode> {
    let tree = cache::tree()?;
    let wanted = |name: &str| {
        options.names.is_empty() || options.names.iter().any(|part| name.contains(part.as_str()))
    };
    let mut cases = cases(&tree.join("tests"))?;
    cases.retain(|case| wanted(&case.name) && (options.nightly || !case.is_nightly_only()));
    let mut checks = Vec::from(CHECKS);
    checks.retain(|check| wanted(check.name) && (options.nightly || !check.nightly_only));
    ensure!(
        !cases.is_empty() || !checks.is_empty(),
        "no test's name contains {:?}: --list shows the names",
        options.names
    );
    if options.list {
        checks.iter().for_each(|check| println!("{}: {}", check.name, check.about));
        cases.iter().for_each(|case| println!("{}: {}", case.name, case.about));
        return Ok(ExitCode::SUCCESS);
    }
    let mut total = Count::default();
    for check in checks {
        announce(check.name);
        let start = Instant::now();
        total.add(check.name, start, (check.run)(&tree, options.nightly));
    }
    // Cases with few CPUs first: a case with many waits until all of them are free.
    cases.sort_by_key(Case::cpus);
    jobs::run(
        &cases,
        jobs::cpus().min(MAX_CPUS),
        Case::cpus,
        |case| (Instant::now(), case.run(options.nightly)),
        |running| match running {
            [one] => announce(&one.name),
            [first, rest @ ..] => announce(&format!("{} and {} more", first.name, rest.len())),
            [] => (),
        },
        |case, returned| {
            let (start, ending) =
                returned.unwrap_or_else(|| (Instant::now(), Err(anyhow!("the test panicked"))));
            let outcome = ending.map(|ending| match ending {
                Ending::Passed => one_passed(""),
                Ending::Skipped(why) => skipped(why),
            });
            total.add(&case.name, start, outcome);
        },
    );
    println!("{} passed, {} failed, {} skipped", total.passed, total.failed, total.skipped);
    Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Shows what is running, on a terminal only: a log has the results.
fn announce(name: &str) {
    replace_line(&format!("        {name} ..."));
}

/// On a terminal, replaces the line at the cursor by `text`.
fn replace_line(text: &str) {
    use std::io::{stderr, IsTerminal};
    if stderr().is_terminal() {
        eprint!("\r\x1b[K{text}\r");
    }
}

impl Count {
    /// Adds the outcome of the entry `name`, which began at `start`, and prints its line.
    fn add(&mut self, name: &str, start: Instant, outcome: Result<Outcome>) {
        let (count, note) = outcome.unwrap_or_else(|error| {
            let text = format!("{error:#}");
            (Self { failed: 1, ..Self::default() }, text)
        });
        let word = match count {
            Self { failed: 1.., .. } => "FAILED ",
            Self { passed: 0, .. } => "skipped",
            _ => "ok     ",
        };
        let note = if note.is_empty() { note } else { format!(": {note}") };
        replace_line("");
        println!("{word} {name} ({:.1} s){note}", start.elapsed().as_secs_f64());
        self.passed += count.passed;
        self.failed += count.failed;
        self.skipped += count.skipped;
    }
}

fn one_passed(note: &str) -> Outcome {
    (Count { passed: 1, ..Count::default() }, note.to_owned())
}

fn skipped(why: &str) -> Outcome {
    (Count { skipped: 1, ..Count::default() }, why.to_owned())
}

#[cfg(test)]
mod tests;
