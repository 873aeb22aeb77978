//! Errors of a kernel's calls, and whether a command goes on after one.

use super::output::quoted;
use liblinux::calls::Calls;
use liblinux::Errno;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A call that failed: what failed, on which file, and why.
#[derive(Debug)]
pub struct Failure {
    what: String,
    path: PathBuf,
    /// The kernel's number.
    pub errno: Errno,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = quoted(self.path.as_os_str().as_bytes());
        let path = shortened(&String::from_utf8_lossy(&path));
        write!(f, "cannot {} {path}: {}", self.what, explain(self.errno))
    }
}

impl std::error::Error for Failure {}

/// A path that is not longer than a message should be: the folders in the middle are left out.
fn shortened(path: &str) -> String {
    const MOST: usize = 300;
    if path.len() <= MOST {
        return path.to_owned();
    }
    let cut = |at: usize| (at..).find(|&at| path.is_char_boundary(at)).unwrap_or(path.len());
    format!("{}...{}", &path[..cut(MOST / 3)], &path[cut(path.len() - MOST / 2)..])
}

/// Makes an error of a failed call: what failed, on which file, and why.
pub fn failed<'a>(what: &'a str, path: &'a Path) -> impl Fn(Errno) -> anyhow::Error + 'a {
    move |errno| Failure { what: what.into(), path: path.into(), errno }.into()
}

/// What an error number means.
pub fn explain(errno: Errno) -> String {
    let text = io::Error::from_raw_os_error(errno.0).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// A message without control characters, which a terminal would obey, and without the numbers of the host's errors.
pub fn printable(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        plain.push_str(rest.strip_prefix(')').unwrap_or(rest));
    }
    let shown = |c: char| match c {
        '\n' => ' ',
        c if c.is_control() => '?',
        c => c,
    };
    plain.trim_end().chars().map(shown).collect()
}

/// Prints a warning.
pub fn warn(text: &str) {
    eprintln!("kyozon: warning: {}", printable(text));
}

/// Whether the next file would fail likewise: a full or read-only file system, a signal, or a kernel that has ended.
pub fn is_final(error: &anyhow::Error, kernels: &[&dyn Calls]) -> bool {
    let errno = error.downcast_ref::<Failure>().map(|failure| failure.errno.0);
    matches!(errno, Some(libc::ENOSPC | libc::EDQUOT | libc::EROFS | libc::ESHUTDOWN))
        || crate::interrupt::received()
        || kernels.iter().any(|calls| calls.call(libc::SYS_getpid, &mut []).is_err())
}

/// Whether the error is that a file, or a folder that leads to it, does not exist.
pub fn is_missing(error: &anyhow::Error) -> bool {
    let errno = error.downcast_ref::<Failure>().map(|failure| failure.errno.0);
    matches!(errno, Some(libc::ENOENT | libc::ENOTDIR))
}

/// Errors after which a command goes on. Each is printed at once.
#[derive(Debug, Default)]
pub struct Tolerated(u64);

impl Tolerated {
    /// Prints an error and forgets it, unless it is final.
    pub fn pass(
        &mut self,
        result: anyhow::Result<()>,
        kernels: &[&dyn Calls],
    ) -> anyhow::Result<()> {
        let Err(error) = result else { return Ok(()) };
        if is_final(&error, kernels) {
            return Err(error);
        }
        self.0 += 1;
        warn(&format!("{error:#}"));
        Ok(())
    }

    /// An error if there was one: `what` says what was not done with how many files.
    pub fn end(self, what: &str) -> anyhow::Result<()> {
        match self.0 {
            0 => Ok(()),
            1 => anyhow::bail!("1 file was not {what}: the warning says why"),
            count => anyhow::bail!("{count} files were not {what}: the warnings say why"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_keep_both_ends() {
        assert_eq!(shortened("/short"), "/short");
        let path = format!("/first/{}last", "ö/".repeat(1000));
        let short = shortened(&path);
        assert!(short.starts_with("/first/ö") && short.ends_with("ö/last") && short.len() < 300);
    }

    #[test]
    fn a_message_is_one_line_that_a_terminal_shows() {
        let host = io::Error::from_raw_os_error(libc::ENOSPC);
        assert_eq!(printable(&format!("a: {host}: b")), "a: No space left on device: b");
        assert_eq!(printable("new\nline \u{1b}[31mred\u{9b}"), "new line ?[31mred?");
    }
}
