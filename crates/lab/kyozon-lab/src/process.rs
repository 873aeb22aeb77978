//! The programs that the laboratory starts: each has a time limit and a process group, and ends with the laboratory.

use crate::cache;
use anyhow::{bail, Context, Result};
use rustix::process::{kill_process_group, set_parent_process_death_signal, Pid, Signal};
use std::collections::BTreeSet;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The output and the status of a program.
#[derive(Debug)]
pub struct Finished {
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Standard error; bytes that are not UTF-8 are replaced.
    pub stderr: String,
}

/// Running process groups; a signal ends all of them.
static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// On Ctrl-C, hang-up or termination: kills every program that this one started, removes its temporary folders, exits.
pub fn end_all_on_signal() -> Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // Locked until the exit, so that no thread starts another program.
            let groups = GROUPS.lock().unwrap_or_else(|held| held.into_inner());
            for pid in groups.iter().filter_map(|pid| Pid::from_raw(*pid)) {
                let _ = kill_process_group(pid, Signal::KILL);
            }
            cache::remove_scratch();
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// A running program. Dropping the handle kills its whole process group.
#[derive(Debug)]
pub struct Group(Child);

impl Group {
    /// Starts `command` in its own process group. The kernel kills it when the calling thread ends.
    pub fn spawn(command: &mut Command) -> Result<Self> {
        command.process_group(0);
        die_with_parent(command);
        let name = command.get_program().to_string_lossy().into_owned();
        let mut groups = GROUPS.lock().expect("no panic while it is held");
        command
            .spawn()
            .inspect(|child| {
                groups.insert(child.id() as i32);
            })
            .map(Self)
            .with_context(|| format!("start {name}: is it installed? 'make setup' installs it"))
    }

    /// The status, if the program has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.0.try_wait()?)
    }

    /// Waits at most `limit`; `None` if the program still runs then.
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
        GROUPS.lock().expect("no panic while it is held").remove(&(self.0.id() as i32));
    }
}

#[allow(unsafe_code)]
fn die_with_parent(command: &mut Command) {
    // SAFETY: the closure runs between fork and exec; it makes one system call and allocates nothing.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
}

/// Restricts `command` to the CPU of this thread, so that no two of its threads ever run at the same time.
#[allow(unsafe_code)]
pub fn on_one_cpu(command: &mut Command) {
    use rustix::thread::{sched_getcpu, sched_setaffinity, CpuSet};
    let mut set = CpuSet::new();
    set.set(sched_getcpu());
    // SAFETY: the closure runs between fork and exec; it makes one system call and allocates nothing.
    unsafe {
        command.pre_exec(move || Ok(sched_setaffinity(None, &set)?));
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
    // Remaining processes of the group would keep the pipes open for ever. A process that left the group may do so
    // for a moment: `take` waits for it, but not long.
    let _ = kill_process_group(Pid::from_child(group.child()), Signal::KILL);
    let text = |output: Collected| String::from_utf8_lossy(&output.take()).into_owned();
    Ok(Finished { status, stdout: text(stdout), stderr: text(stderr) })
}

/// As [`run`], but a status other than 0 is an error with the program's last line.
pub fn run_ok(command: &mut Command, limit: Duration) -> Result<String> {
    let finished = run(command, limit)?;
    if !finished.status.success() {
        let name = command.get_program().to_string_lossy().into_owned();
        let why = last_line(&finished.stderr).or_else(|| last_line(&finished.stdout));
        bail!("{name} failed ({}): {}", finished.status, why.unwrap_or("no output"));
    }
    Ok(finished.stdout)
}

/// CPU time of all processes that this one started and that have ended.
#[allow(unsafe_code)]
pub fn children_time() -> Result<Duration> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure is one of integers, which the call fills.
    let usage = unsafe {
        if libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) != 0 {
            bail!("getrusage: {}", std::io::Error::last_os_error());
        }
        usage.assume_init()
    };
    let time = |time: libc::timeval| {
        let micros = time.tv_sec * 1_000_000 + time.tv_usec;
        u64::try_from(micros).map(Duration::from_micros).context("a negative CPU time")
    };
    Ok(time(usage.ru_utime)? + time(usage.ru_stime)?)
}

/// The last line that is not blank, trimmed.
pub fn last_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}

/// Where and why a Rust test panicked first, by what its harness printed.
pub fn panic_message(text: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|line| !line.contains(" panicked at "));
    let place = lines.next()?;
    let why: Vec<&str> =
        lines.take_while(|line| !line.is_empty() && !line.starts_with("note: ")).take(5).collect();
    Some(format!("{place} {}", why.join(" ")))
}

/// The bytes read from a pipe so far, by a thread.
struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: thread::JoinHandle<()>,
}

fn collect(mut from: impl Read + Send + 'static) -> Collected {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let into = bytes.clone();
    let reader = thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            into.lock().expect("no panic while it is held").extend(&buffer[..n]);
        }
    });
    Collected { bytes, reader }
}

impl Collected {
    /// Everything, if the pipe is closed within a second; else the bytes read until then.
    fn take(self) -> Vec<u8> {
        let deadline = Instant::now() + Duration::from_secs(1);
        while !self.reader.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        std::mem::take(&mut self.bytes.lock().expect("no panic while it is held"))
    }
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
    fn a_panic_has_its_place_and_message() {
        let printed =
            "running 1 test\n---- a stdout ----\n\nthread 'a' (7) panicked at b.rs:1:2:\n\
                       left: 1\nright: 2\nnote: run with RUST_BACKTRACE\n";
        let message = panic_message(printed).unwrap();
        assert_eq!(message, "thread 'a' (7) panicked at b.rs:1:2: left: 1 right: 2");
        assert_eq!(panic_message("error: test failed"), None);
    }

    #[test]
    fn hung_programs_are_killed_with_their_children() {
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
    fn remaining_children_do_not_delay_the_end() {
        let before = Instant::now();
        run(&mut sh("sleep 60 & exit 0"), Duration::from_secs(30)).unwrap();
        assert!(before.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn processes_outside_the_group_delay_it_little() {
        let before = Instant::now();
        let done =
            run(&mut sh("echo said; setsid sleep 5 & exit 0"), Duration::from_secs(30)).unwrap();
        assert_eq!(done.stdout, "said\n");
        assert!(before.elapsed() < Duration::from_secs(4));
    }

    #[test]
    fn missing_programs_are_named() {
        let error = run(&mut Command::new("no-such-program"), Duration::from_secs(1)).unwrap_err();
        assert!(format!("{error:#}").contains("no-such-program"));
    }
}
