//! The parts of the suite: their share of its time, and which of them a change of the source concerns.

use crate::process;
use crate::scenario::Case;
use anyhow::{bail, Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Tests that share a budget of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Part {
    pub(super) name: &'static str,
    /// Minutes on one CPU of a machine with two, everything built for the first time.
    pub(super) minutes: u32,
    /// Folders below `tests`; the part without folders has the checks.
    folders: &'static [&'static str],
}

const CHECKS: Part = Part { name: "checks", minutes: 11, folders: &[] };
/// Not a test: make has installed and built everything before.
pub(super) const SETUP: Part = Part { name: "setup and build", minutes: 12, folders: &[] };
/// Not a test either: what the library's tests need, Linux's kernel above all.
pub(super) const LIBRARY: Part = Part { name: "library build", minutes: 14, folders: &[] };

pub(super) const PARTS: [Part; 8] = [
    SETUP,
    LIBRARY,
    CHECKS,
    Part {
        name: "colocation",
        minutes: 34,
        folders: &["attacks", "bugs", "colocation", "microkernel", "packaging"],
    },
    Part { name: "monitor", minutes: 16, folders: &["lab", "monitor"] },
    Part { name: "unikernels", minutes: 6, folders: &["unikernel"] },
    Part { name: "library", minutes: 6, folders: &["library"] },
    Part { name: "typed code", minutes: 18, folders: &["typed"] },
];

impl Part {
    /// The part of the entry `name`.
    pub(super) fn of(name: &str) -> Self {
        if name == LIBRARY.name {
            return LIBRARY;
        }
        let folder = name.split_once('/').map_or("", |(folder, _)| folder);
        PARTS.into_iter().find(|part| part.folders.contains(&folder)).unwrap_or(CHECKS)
    }

    /// Whether the part took more than one and a half times its minutes, on a machine that took `slowness` times as
    /// long as it should for all tests together.
    pub(super) fn exceeded_by(self, time: Duration, slowness: f64) -> bool {
        time.as_secs_f64() > f64::from(self.minutes) * 90.0 * slowness
    }

    /// Whether it is a part of the tests: what is built may be in the cache.
    fn is_tests(self) -> bool {
        self != SETUP && self != LIBRARY
    }
}

/// How many times as long as they should all tests took together, at least 1: a machine that others use too is slow in
/// every part.
pub(super) fn slowness(taken: &[(Part, Duration)]) -> f64 {
    let tests = || taken.iter().filter(|(part, _)| part.is_tests());
    let minutes: f64 = tests().map(|(_, time)| time.as_secs_f64() / 60.0).sum();
    let expected: f64 = tests().map(|(part, _)| f64::from(part.minutes)).sum();
    (minutes / expected).max(1.0)
}

/// Tests of Linux with a cokernel.
const COLOCATION: &[&str] =
    &["attacks/", "bugs/", "colocation/", "lab/demo", "microkernel/", "monitor/", "packaging/"];
/// Tests of the monitor.
const MONITOR: &[&str] = &[
    "attacks/disarm",
    "attacks/found",
    "attacks/hooks",
    "attacks/registers",
    "attacks/reported",
    "attacks/transient",
    "lab/demo",
    "monitor/",
];

/// Beginnings of paths, with what their files concern: parts of names of tests. The first that fits decides; any other
/// file concerns every test, unless a scenario reads it.
const CONCERNED: [(&str, &[&str]); 17] = [
    ("docs/limits.md", &["attacks/root-listed"]),
    ("docs/", &[]),
    ("README.md", &[]),
    ("CHANGELOG.md", &[]),
    ("CONTRIBUTING.md", &[]),
    ("SECURITY.md", &[]),
    ("fuzz/", &[]),
    ("crates/typed/", &["typed/", "microkernel/typed"]),
    ("crates/unikernel/", &["unikernel/", "packaging/"]),
    ("crates/library/libc/", &["library/libc/"]),
    ("crates/lab/unikernel-test/", &["unikernel/"]),
    ("crates/colocation/monitor", MONITOR),
    ("crates/colocation/", COLOCATION),
    ("crates/library/", &["library/"]),
    ("linux/library/", &["library/"]),
    ("linux/typed/", &["typed/", "packaging/"]),
    ("linux/", COLOCATION),
];

/// Files that differ from the commit `since`, in the working tree too, and new ones.
pub(super) fn changed(tree: &Path, since: &str) -> Result<Vec<PathBuf>> {
    let git = |arguments: &[&str]| {
        let limit = Duration::from_secs(60);
        process::run_ok(Command::new("git").args(arguments).current_dir(tree), limit)
    };
    if since.starts_with('-') {
        bail!("{since} is not a commit");
    }
    let known = git(&["diff", "--name-only", "-z", since, "--"])
        .with_context(|| format!("cannot compare with the commit {since}"))?;
    let new = git(&["ls-files", "-z", "--others", "--exclude-standard"])?;
    Ok(known.split_terminator('\0').chain(new.split_terminator('\0')).map(PathBuf::from).collect())
}

/// Whether a change of `file` concerns `case`.
pub(super) fn concerns(tree: &Path, file: &Path, case: &Case) -> bool {
    if file.starts_with("tests") {
        return case.reads(tree, file);
    }
    let text = file.to_string_lossy();
    let rule = CONCERNED.iter().find(|(start, _)| text.starts_with(start));
    rule.is_none_or(|(_, names)| names.iter().any(|name| case.name.starts_with(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cache, scenario};

    fn concerned(file: &str) -> Vec<String> {
        let tree = cache::tree().unwrap();
        let cases = scenario::cases(&tree.join("tests")).unwrap();
        let concerned = cases.into_iter().filter(|case| concerns(&tree, Path::new(file), case));
        concerned.map(|case| case.name).collect()
    }

    #[test]
    fn every_folder_of_tests_is_in_a_part() {
        let cases = scenario::cases(&cache::tree().unwrap().join("tests")).unwrap();
        for case in cases {
            assert_ne!(Part::of(&case.name), CHECKS, "{}: its folder is in no part", case.name);
        }
        assert_eq!(Part::of("unit"), CHECKS);
        assert_eq!(Part::of(LIBRARY.name), LIBRARY);
        assert_eq!(Part::of("library/fs").name, "library");
    }

    #[test]
    fn a_change_concerns_what_uses_the_file() {
        assert!(concerned("docs/manual.md").is_empty());
        assert_eq!(concerned("docs/limits.md"), ["attacks/root-listed"]);
        assert!(concerned("crates/unikernel/tender/src/lib.rs")
            .iter()
            .all(|name| { name.starts_with("unikernel/") || name.starts_with("packaging/") }));
        let monitor = concerned("crates/colocation/monitor/src/text.rs");
        assert!(monitor.iter().any(|name| name.starts_with("attacks/found")));
        assert!(!monitor.iter().any(|name| name.starts_with("colocation/")));
        let busy = concerned("tests/monitor/busy/busy.sh");
        assert!(!busy.is_empty() && busy.iter().all(|name| name.starts_with("monitor/busy")));
        let shared = concerned("tests/colocation/lib.sh");
        assert!(shared.iter().any(|name| name.starts_with("monitor/busy")));
        let all = scenario::cases(&cache::tree().unwrap().join("tests")).unwrap().len();
        assert_eq!(concerned("crates/base/abi/src/lib.rs").len(), all);
    }
}
