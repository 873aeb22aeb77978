//! What became of the tests: a line for each, the total, the time of each part, and a file for other programs.

use super::parts::{slowness, Part, PARTS, SETUP};
use super::{replace_line, Outcome};
use crate::cache;
use anyhow::{Error, Result};
use quick_junit::{
    NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestRerun, TestSuite,
};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// How many tests of one entry of the suite passed, failed and were skipped.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Count {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
}

/// The results so far.
#[derive(Debug)]
pub(super) struct Report {
    total: Count,
    /// Entries that ran once more, with the reason.
    again: Vec<(String, TestRerun)>,
    parts: Vec<(Part, Duration, TestSuite)>,
}

impl Report {
    pub(super) fn new() -> Self {
        let part = |part: Part| (part, Duration::ZERO, TestSuite::new(part.name));
        Self { total: Count::default(), again: Vec::new(), parts: PARTS.map(part).into() }
    }

    /// Adds that the entry `name` runs once more because of `error`, and prints a line.
    pub(super) fn add_again(&mut self, name: &str, error: &Error) {
        let text = format!("{error:#}");
        replace_line("");
        println!("again   {name}: {text}");
        let mut rerun = TestRerun::new(NonSuccessKind::Failure);
        rerun.set_message(text);
        self.again.push((name.to_owned(), rerun));
    }

    /// Adds the outcome of the entry `name`, which had `cpus` CPUs of this machine for `time`, and prints its line.
    pub(super) fn add(
        &mut self,
        name: &str,
        cpus: usize,
        time: Duration,
        outcome: Result<Outcome>,
    ) {
        let (count, note) = outcome.unwrap_or_else(|error| {
            let text = format!("{error:#}");
            (Count { failed: 1, ..Count::default() }, text)
        });
        let (word, mut status) = match count {
            Count { failed: 1.., .. } => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(&note);
                ("FAILED ", status)
            }
            Count { passed: 0, .. } => {
                let mut status = TestCaseStatus::skipped();
                status.set_message(&note);
                ("skipped", status)
            }
            _ => ("ok     ", TestCaseStatus::success()),
        };
        let reruns = self.again.iter().filter(|(other, _)| other == name);
        status.add_reruns(reruns.map(|(_, rerun)| rerun.clone()));
        let note = if note.is_empty() { note } else { format!(": {note}") };
        replace_line("");
        println!("{word} {name} ({:.1} s){note}", time.as_secs_f64());
        self.total.passed += count.passed;
        self.total.failed += count.failed;
        self.total.skipped += count.skipped;
        let part = Part::of(name);
        let found = self.parts.iter_mut().find(|(other, ..)| other.name == part.name);
        let (_, taken, suite) = found.expect("every part is in the list");
        *taken += time * u32::try_from(cpus).unwrap_or(u32::MAX);
        let mut case = TestCase::new(name, status);
        case.set_time(time);
        suite.add_test_case(case);
    }

    /// Adds the CPU time of what make did before.
    pub(super) fn add_before(&mut self, time: Duration) {
        let found = self.parts.iter_mut().find(|(part, ..)| *part == SETUP);
        found.expect("every part is in the list").1 += time;
    }

    /// Prints what each part has taken. In the `whole` suite, a part that took too long is a failure.
    pub(super) fn close(&mut self, whole: bool) {
        let taken: Vec<_> = self.parts.iter().map(|(part, taken, _)| (*part, *taken)).collect();
        let slowness = slowness(&taken);
        for (part, taken) in taken {
            let minutes = taken.as_secs_f64() / 60.0;
            println!("{}: {minutes:.1} core-minutes of {}", part.name, part.minutes);
            if whole && part.exceeded_by(taken, slowness) {
                println!(
                    "FAILED  {}: more than 1.5 times its share of the core-minutes",
                    part.name
                );
                self.total.failed += 1;
            }
        }
        if whole {
            println!("all tests: {slowness:.2} times their core-minutes");
        }
    }

    /// Writes the results in JUnit's format into the cache.
    pub(super) fn write(&self) -> Result<PathBuf> {
        let mut junit = Junit::new("kyozon");
        junit.add_test_suites(self.parts.iter().map(|(_, _, suite)| suite.clone()));
        let path = cache::folder("logs")?.join("junit.xml");
        fs::write(&path, junit.to_string()?)?;
        Ok(path)
    }

    /// The number of tests that failed, and the last line.
    pub(super) fn total(&self) -> (usize, String) {
        let Count { passed, failed, skipped } = self.total;
        let again = match self.again.len() {
            0 => String::new(),
            count => format!(", {count} run twice"),
        };
        (failed, format!("{passed} passed, {failed} failed, {skipped} skipped{again}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::skipped;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn errors_count_as_failures() {
        let mut report = Report::new();
        report.add("lint", 1, SECOND, Err(anyhow::anyhow!("no <reason>")));
        report.add("unikernel/kv", 1, SECOND, Ok(skipped("why")));
        assert_eq!(report.total(), (1, "0 passed, 1 failed, 1 skipped".to_owned()));
        let mut junit = Junit::new("x");
        junit.add_test_suites(report.parts.iter().map(|(_, _, suite)| suite.clone()));
        let text = junit.to_string().unwrap();
        assert!(text.contains(r#"failures="1""#), "{text}");
        assert!(text.contains(r#"message="no &lt;reason&gt;""#), "{text}");
    }

    #[test]
    fn second_runs_are_counted() {
        let mut report = Report::new();
        report.add_again("typed/run [6.12, 2 CPUs]", &anyhow::anyhow!("a <reason>"));
        let passed = Count { passed: 1, ..Count::default() };
        report.add("typed/run [6.12, 2 CPUs]", 1, SECOND, Ok((passed, String::new())));
        report.add("typed/run [6.1, 2 CPUs]", 1, SECOND, Ok(skipped("why")));
        let total = "1 passed, 0 failed, 1 skipped, 1 run twice";
        assert_eq!(report.total(), (0, total.to_owned()));
        let mut junit = Junit::new("x");
        junit.add_test_suites(report.parts.iter().map(|(_, _, suite)| suite.clone()));
        let text = junit.to_string().unwrap();
        assert!(text.contains(r#"<flakyFailure message="a &lt;reason&gt;""#), "{text}");
    }

    #[test]
    fn a_part_that_takes_too_long_fails_in_the_whole_suite() {
        let mut report = Report::new();
        report.add("monitor/quiet [6.1, 1 CPU]", 2, SECOND * 3600, Ok(skipped("why")));
        report.close(false);
        assert_eq!(report.total().0, 0);
        report.close(true);
        assert_eq!(report.total().0, 1);
    }

    #[test]
    fn on_a_slow_machine_no_part_fails() {
        let mut report = Report::new();
        for name in
            ["unit", "colocation/load", "monitor/load", "unikernel/kv", "library/fs", "typed/run"]
        {
            let minutes = Part::of(name).minutes;
            report.add(name, 1, 2 * minutes * SECOND * 60, Ok(skipped("why")));
        }
        report.close(true);
        assert_eq!(report.total().0, 0);
    }
}
