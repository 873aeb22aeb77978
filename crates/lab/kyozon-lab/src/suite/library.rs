//! Library Linux, and the C and C++ library for its programs: built while other tests run, and before those that need
//! them.

use crate::process;
use anyhow::{anyhow, Context, Result};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Builds everything, and ends with the shell's own account of time. Without a C++ compiler there is C alone.
const SCRIPT: &str = r#"
scripts/library.sh && { scripts/libcxx.sh || scripts/libc.sh; } >/dev/null
status=$?
times
exit $status
"#;
/// Time limit of the build, beside other tests.
const LIMIT: Duration = Duration::from_secs(75 * 60);

/// A build that runs. The tests that need it wait for its end.
pub(super) struct Library(Mutex<Option<JoinHandle<Result<Duration>>>>);

impl Library {
    /// Starts the build. Tests have the CPUs first.
    pub(super) fn start(tree: &Path) -> Self {
        let mut command = Command::new("nice");
        command.args(["-n", "19", "sh", "-c", SCRIPT]).current_dir(tree);
        Self(Mutex::new(Some(thread::spawn(move || build(&mut command)))))
    }

    /// Waits for the end, once. Returns the CPU time that the build took.
    pub(super) fn wait(&self) -> Result<Duration> {
        let build = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        build.context("the library is built once")?.join().map_err(|_| anyhow!("a panic"))?
    }
}

fn build(command: &mut Command) -> Result<Duration> {
    let printed = process::run_ok(command, LIMIT)?;
    children(&printed).with_context(|| format!("no times of a shell: {printed}"))
}

/// The CPU time of a shell's children: the second line of its `times`.
fn children(printed: &str) -> Option<Duration> {
    let words = printed.lines().nth(1)?.split_whitespace();
    words.map(duration).sum::<Option<f64>>().and_then(|time| Duration::try_from_secs_f64(time).ok())
}

/// Seconds of `2m3.5s`.
fn duration(text: &str) -> Option<f64> {
    let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_shell_s_children_are_read() {
        let printed = "0m0.010000s 0m0.020000s\n2m3.500000s 0m10.250000s\n";
        assert_eq!(children(printed), Some(Duration::from_millis(133_750)));
        assert_eq!(children("0m0.01s 0m0.02s\n"), None);
        assert_eq!(children("a\nb c\n"), None);
    }

    #[test]
    fn a_build_that_fails_has_its_last_line() {
        let mut command = Command::new("sh");
        let error = build(command.args(["-c", "echo library: no compiler >&2; exit 1"]));
        assert!(error.unwrap_err().to_string().ends_with("library: no compiler"));
        let mut command = Command::new("sh");
        let taken = build(
            command.args(["-c", "sh -c 'while [ $((i += 1)) -lt 99999 ]; do :; done'; times"]),
        );
        assert!(taken.unwrap() > Duration::ZERO);
    }
}
