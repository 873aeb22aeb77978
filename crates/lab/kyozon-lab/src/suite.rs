//! Every test of the project, with one total.
//!
//! Checks need no guest and run first, cheapest first: [`files`], [`links`], [`size`] and [`style`] read the source
//! tree, [`dependencies`] asks cargo, [`tools`] runs compilers and their like. Scenarios ([`crate::scenario`]) follow,
//! side by side.

mod before;
mod dependencies;
mod files;
mod library;
mod links;
mod parts;
mod report;
mod size;
mod style;
mod tools;

pub(crate) use tools::cargo;

use crate::booted::Booted;
use crate::deaf::DeafCpu;
use crate::scenario::{cases, Case, Ending};
use crate::stale::StaleBreakpoint;
use crate::{cache, jobs};
use anyhow::{anyhow, ensure, Error, Result};
use library::Library;
use parts::{changed, concerns, LIBRARY};
use report::{Count, Report};
use std::cmp::Reverse;
use std::env;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Time limit of one tool.
const LIMIT: Duration = Duration::from_secs(3600);

/// Maximum CPUs of all tests that run at a time: each guest also takes up to 1 GiB of memory.
const MAX_CPUS: usize = 4;

/// After this time no more tests are started, except in the nightly run.
const LAST_START: Duration = Duration::from_secs(80 * 60);

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
    /// Run the checks, and only those other tests that the changes since this commit concern
    #[arg(long, value_name = "COMMIT")]
    changed: Option<String>,
}

/// The count of an entry that did not fail, and a note for its line.
type Outcome = (Count, String);

/// A test that needs no guest.
struct Check {
    name: &'static str,
    about: &'static str,
    nightly_only: bool,
    /// It compiles or runs what was compiled, beside guests.
    builds: bool,
    /// Runs it on the source tree; the flag asks for the longer, nightly run.
    run: fn(&Path, bool) -> Result<Outcome>,
}

impl Check {
    const fn new(
        name: &'static str,
        about: &'static str,
        run: fn(&Path, bool) -> Result<Outcome>,
    ) -> Self {
        Self { name, about, nightly_only: false, builds: false, run }
    }

    const fn building(self) -> Self {
        Self { builds: true, ..self }
    }
}

/// The checks, cheapest first: those that build last. Fuzzing takes a minute, and in the nightly run an hour. Miri
/// takes minutes and needs a nightly toolchain.
const CHECKS: [Check; 16] = [
    Check::new("format", "the source is formatted", tools::format),
    Check::new("lint", "clippy reports nothing, in any crate", tools::lint).building(),
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
    Check::new("size", "the checker of typed code has at most 4,000 code lines", size::check),
    Check::new("links", "files and functions that the documentation names exist", links::check),
    Check::new(
        "bare-metal",
        "crates that run beside Linux build without an operating system",
        tools::bare_metal,
    )
    .building(),
    Check::new("unit", "unit tests of every crate", tools::unit).building(),
    Check::new("fuzz", "no input breaks the parsers of untrusted bytes", tools::fuzzers).building(),
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
    Check {
        nightly_only: true,
        ..Check::new(
            "tables",
            "the committed tables that count instructions are those of today's code, to 1 %",
            tools::tables,
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
    if let Some(since) = &options.changed {
        let files = changed(&tree, since)?;
        cases.retain(|case| files.iter().any(|file| concerns(&tree, file, case)));
    }
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
    let mut report = Report::new();
    if let Some(time) = before::cpu_time() {
        report.add_before(time);
    }
    let report = Mutex::new(report);
    let add = |name: &str, cpus: usize, start: Instant, outcome: Result<Outcome>| {
        let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
        report.add(name, cpus, start.elapsed(), outcome);
    };
    let cpus = jobs::cpus().min(MAX_CPUS);
    let library = cases.iter().any(Case::needs_library).then(|| Library::start(&tree));
    let (building, reading): (Vec<_>, Vec<_>) = checks.into_iter().partition(|check| check.builds);
    for check in reading {
        announce(check.name);
        add(check.name, 1, Instant::now(), (check.run)(&tree, options.nightly));
    }
    // Those that measure time come last, one by one. Of the others, the longest come first, and those that need the
    // library when it is built.
    cases.sort_by_key(|case| {
        let needs = case.needs_library();
        (case.cpus(), needs, Reverse(case.seconds()))
    });
    let mut jobs: Vec<Job> =
        Job::checks(&building).into_iter().chain(cases.iter().map(Job::Case)).collect();
    if let Some(library) = &library {
        let first = jobs.iter().position(Job::needs_library).unwrap_or(jobs.len());
        jobs.insert(first, Job::Library(library));
    }
    let beside = if cases.is_empty() { cpus } else { 1 };
    // The nightly run also tests what differs from one boot to another.
    let booted = if options.nightly { None } else { Some(Booted::new()?) };
    let started = started();
    let left = jobs::run(
        &jobs,
        cpus,
        |job| job.cpus(beside),
        || options.nightly || started.elapsed().is_ok_and(|time| time < LAST_START),
        |job| match job {
            Job::Checks(checks) => checks.iter().for_each(|check| {
                let start = Instant::now();
                add(check.name, beside, start, (check.run)(&tree, options.nightly));
            }),
            Job::Library(library) => match library.wait() {
                Ok(time) => {
                    let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
                    report.add(LIBRARY.name, 1, time, Ok(one_passed("CPU time")));
                }
                Err(error) => add(LIBRARY.name, 0, Instant::now(), Err(error)),
            },
            Job::Case(case) => {
                let start = Instant::now();
                let again = |error: &Error| {
                    let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
                    report.add_again(&case.name, error);
                };
                let outcome = once_more(|| case.run(options.nightly, booted.as_ref()), again);
                let outcome = outcome.map(|ending| match ending {
                    Ending::Passed => one_passed(""),
                    Ending::Skipped(why) => skipped(why),
                });
                add(&case.name, case.cpus().min(cpus), start, outcome);
            }
        },
        |running| match running {
            [one] => announce(one.name()),
            [first, rest @ ..] => announce(&format!("{} and {} more", first.name(), rest.len())),
            [] => (),
        },
        |job, returned| {
            if returned.is_none() {
                add(job.name(), 1, Instant::now(), Err(anyhow!("the test panicked")));
            }
        },
    );
    for job in left {
        add(job.name(), 0, Instant::now(), Err(anyhow!("not started: 80 minutes are over")));
    }
    let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.close(options.is_whole());
    println!("results: {}", report.write()?.display());
    let (failed, line) = report.total();
    println!("{line}");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What has its CPUs to itself.
enum Job<'a> {
    /// Checks that share cargo's folder: one after the other.
    Checks(&'a [Check]),
    /// The end of the library's build. The jobs behind it start after that.
    Library(&'a Library),
    Case(&'a Case),
}

impl<'a> Job<'a> {
    fn checks(checks: &'a [Check]) -> Option<Self> {
        (!checks.is_empty()).then_some(Self::Checks(checks))
    }

    fn name(&self) -> &str {
        match self {
            Self::Checks(checks) => checks[0].name,
            Self::Library(_) => LIBRARY.name,
            Self::Case(case) => &case.name,
        }
    }

    fn cpus(&self, checks: usize) -> usize {
        match self {
            Self::Checks(_) => checks,
            Self::Library(_) => usize::MAX,
            Self::Case(case) => case.cpus(),
        }
    }

    fn needs_library(&self) -> bool {
        matches!(self, Self::Case(case) if case.needs_library())
    }
}

/// Runs a test, and once more if it failed because of QEMU: `again` gets the reason.
fn once_more<T>(run: impl Fn() -> Result<T>, again: impl FnOnce(&Error)) -> Result<T> {
    match run() {
        Err(error) if error.is::<StaleBreakpoint>() || error.is::<DeafCpu>() => {
            again(&error);
            run()
        }
        outcome => outcome,
    }
}

/// When make was started, which has installed and built everything since; without make, now.
fn started() -> SystemTime {
    let seconds = env::var("KYOZON_STARTED").ok().and_then(|seconds| seconds.parse().ok());
    let by_make = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    seconds.map_or_else(SystemTime::now, by_make)
}

impl Options {
    /// Whether every test of the daily run is wanted.
    fn is_whole(&self) -> bool {
        self.names.is_empty() && self.changed.is_none() && !self.nightly
    }
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

fn one_passed(note: &str) -> Outcome {
    (Count { passed: 1, ..Count::default() }, note.to_owned())
}

fn skipped(why: &str) -> Outcome {
    (Count { skipped: 1, ..Count::default() }, why.to_owned())
}

#[cfg(test)]
mod tests;
