//! Programs that we start: each has a limit in time, its own process group, and does not outlive us.

use anyhow::{bail, Context, Result};
use rustix::process::{kill_process_group, set_parent_process_death_signal, Pid, Signal};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What a program printed and how it ended.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// Standard output, lossy.
    pub stdout: String,
    /// Standard error, lossy.
    pub stderr: String,
}

/// A running program whose whole process group is killed when the handle goes.
#[derive(Debug)]
pub struct Group(Child);

impl Group {
    /// Starts `command` in a process group of its own; it is killed when the calling thread ends.
    pub fn spawn(command: &mut Command) -> Result<Self> {
        command.process_group(0);
        die_with_parent(command);
        let name = command.get_program().to_string_lossy().into_owned();
        command
            .spawn()
            .map(Self)
            .with_context(|| format!("start {name}: is it installed? 'make setup' installs it"))
    }

    /// The status, where the program has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.0.try_wait()?)
    }

    /// Waits at most `limit`; `None` where the program still runs.
    pub fn wait(&mut self, limit: Duration) -> Result<Option<ExitStatus>> {
        let deadline = Instant::now() + limit;
        loop {
            match self.0.try_wait()? {
                None if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                status => return Ok(status),
            }
        }
    }

    /// The underlying child, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

#[allow(unsafe_code)]
fn die_with_parent(command: &mut Command) {
    // SAFETY: the closure runs between fork and exec; it makes one system call and allocates nothing.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
}

/// Runs a program to its end, at most `limit`, and returns what it printed.
pub fn run(command: &mut Command, limit: Duration) -> Result<Finished> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut group =
        Group::spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let stdout = collect(group.child().stdout.take().expect("piped"));
    let stderr = collect(group.child().stderr.take().expect("piped"));
    let Some(status) = group.wait(limit)? else {
        bail!("{name} did not end within {} s", limit.as_secs());
    };
    // Whoever it left behind would keep the pipes open for ever.
    let _ = kill_process_group(Pid::from_child(group.child()), Signal::KILL);
    let text = |reader: thread::JoinHandle<Vec<u8>>| {
        String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned()
    };
    Ok(Finished { status, stdout: text(stdout), stderr: text(stderr) })
}

/// As [`run`]; a non-zero end is an error with the last line that the program printed to standard error.
pub fn run_ok(command: &mut Command, limit: Duration) -> Result<String> {
    let finished = run(command, limit)?;
    if !finished.status.success() {
        let name = command.get_program().to_string_lossy().into_owned();
        let why = last_line(&finished.stderr).or_else(|| last_line(&finished.stdout));
        bail!("{name} failed ({}): {}", finished.status, why.unwrap_or("it printed nothing"));
    }
    Ok(finished.stdout)
}

/// The last line with something in it.
pub fn last_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}

fn collect(mut from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut all = Vec::new();
        let _ = from.read_to_end(&mut all);
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_status_come_back() {
        let done = run(&mut sh("echo out; echo err >&2; exit 3"), Duration::from_secs(10)).unwrap();
        assert_eq!(
            (done.status.code(), done.stdout.as_str(), done.stderr.as_str()),
            (Some(3), "out\n", "err\n")
        );
        let error =
            run_ok(&mut sh("echo no space >&2; exit 1"), Duration::from_secs(10)).unwrap_err();
        assert!(error.to_string().ends_with("no space"), "{error}");
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let pid_file = folder.path().join("pid");
        let script = format!("sleep 60 & echo $! > {}; wait", pid_file.display());
        let error = run(&mut sh(&script), Duration::from_millis(300)).unwrap_err();
        assert!(error.to_string().contains("did not end"), "{error}");
        let pid = std::fs::read_to_string(pid_file).unwrap();
        thread::sleep(Duration::from_millis(50));
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z"), "child still runs: {stat}");
    }

    #[test]
    fn a_child_left_behind_does_not_keep_us() {
        let before = Instant::now();
        run(&mut sh("sleep 60 & exit 0"), Duration::from_secs(30)).unwrap();
        assert!(before.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run(&mut Command::new("no-such-program"), Duration::from_secs(1)).unwrap_err();
        assert!(format!("{error:#}").contains("no-such-program"));
    }
}
