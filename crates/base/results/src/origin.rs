//! The origin of figures: commit, machine, date and load.

use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// Load average of the machine over one minute, in runnable threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// At the start of the measurement.
    pub start: f64,
    /// At its end.
    pub end: f64,
}

/// The present load, or not a number if `/proc/loadavg` cannot be read; validation refuses that.
pub(crate) fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(f64::NAN)
}

/// Model of the first CPU, or `unknown`.
pub(crate) fn machine() -> String {
    model(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

fn model(cpuinfo: &str) -> String {
    let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let mut models = fields.filter(|(key, _)| key.trim() == "model name");
    models.next().map_or("unknown", |(_, model)| model.trim()).into()
}

/// Short commit of the tree that contains `dir`, or `unknown` outside a repository. `-dirty` follows if the tree
/// differs in anything but the results, which change during the measurement.
pub(crate) fn commit(dir: &Path) -> String {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.arg("--no-optional-locks").arg("-C").arg(dir).args(arguments);
        let output = git.output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_string())
    };
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else {
        return "unknown".into();
    };
    let others = ["status", "--porcelain", "--", ":(top)", ":(top,exclude)docs/results"];
    match git(&others).as_deref() {
        Some("") => commit,
        _ => commit + "-dirty",
    }
}

/// The present time, as `YYYY-MM-DDThh:mm:ssZ`.
pub(crate) fn now() -> String {
    // A clock before 1970 is wrong; it gives 1970.
    date(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO))
}

/// Date in the proleptic Gregorian calendar from the time since 1970, UTC.
fn date(since: Duration) -> String {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let seconds = since.as_secs();
    let (mut days, mut year, mut month) = (seconds / 86_400, 1970, 0);
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", month + 1, days + 1)
}

/// Whether `text` has the form of [`now`].
pub(crate) fn is_date(text: &str) -> bool {
    let form = "0000-00-00T00:00:00Z";
    let fits = |(byte, form)| {
        if form == b'0' {
            u8::is_ascii_digit(&byte)
        } else {
            byte == form
        }
    };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        // `date -u -d @<seconds>`
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(date(Duration::from_secs(seconds)), expected);
        }
        assert!(is_date(&now()));
        assert!(!is_date("2024-12-31 23:59:59Z"));
        assert!(!is_date("2024-12-31T23:59:59+02"));
    }

    #[test]
    fn models() {
        assert_eq!(model("processor\t: 0\nmodel\t\t: 1\nmodel name\t: A: B\nx: y"), "A: B");
        assert_eq!(model("Features : fp"), "unknown");
        assert!(load().is_finite());
    }

    #[test]
    fn commits() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(commit(dir.path()), "unknown");
        let git = |line: &str| {
            let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-C"];
            let mut git = Command::new("git");
            let output = git.args(identity).arg(dir.path()).args(line.split(' ')).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        };
        git("init -q");
        git("commit -q --allow-empty -m one");
        let clean = commit(dir.path());
        assert!(clean.len() >= 4 && clean.bytes().all(|byte| byte.is_ascii_hexdigit()));

        let results = dir.path().join("docs/results");
        fs::create_dir_all(&results).unwrap();
        fs::write(results.join("boot.json"), "").unwrap();
        assert_eq!(commit(&results), clean);
        fs::write(dir.path().join("docs/other"), "").unwrap();
        assert_eq!(commit(&results), clean + "-dirty");
    }
}
