//! QEMU as a process: arguments, console and end.

use crate::{cache, process, process::Group, spec::Spec};
use anyhow::{bail, ensure, Context, Result};
use serde_json::{json, Value};
use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// A running emulator with its folder of logs and sockets. Dropping the handle kills it and removes the folder.
#[derive(Debug)]
pub struct Emulator {
    group: Group,
    folder: tempfile::TempDir,
    name: String,
}

/// QEMU, or the program that `KYOZON_QEMU` names.
pub fn qemu() -> Command {
    Command::new(env::var_os("KYOZON_QEMU").unwrap_or_else(|| "qemu-system-x86_64".into()))
}

/// Arguments that every QEMU guest has.
pub fn arguments(spec: &Spec, initrd: &Path, command_line: &str) -> Result<Vec<String>> {
    ensure!(
        spec.accel != "kvm" || Path::new("/dev/kvm").exists(),
        "--accel kvm: this machine has no /dev/kvm; use tcg"
    );
    let text = |path: &Path| {
        path.to_str().map(str::to_owned).with_context(|| format!("{} is not UTF-8", path.display()))
    };
    let fixed = "-nodefaults -no-user-config -display none".split(' ').map(str::to_owned);
    let ends = (!spec.resets).then(|| "-no-reboot".to_owned());
    let chosen = [
        ("-accel", spec.accel.clone()),
        ("-machine", spec.machine.clone()),
        ("-cpu", spec.cpu.clone()),
        ("-smp", spec.smp.to_string()),
        ("-m", spec.mem.to_string()),
        ("-kernel", text(&spec.kernel.image())?),
        ("-initrd", text(initrd)?),
        ("-append", command_line.to_owned()),
    ];
    let chosen = chosen.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]);
    Ok(fixed.chain(ends).chain(chosen).chain(spec.devices.iter().cloned()).collect())
}

/// User and system time of a process from its `/proc/PID/stat`; with `children`, of those of its children that have
/// ended and were waited for. The command's name may contain blanks and parentheses.
pub(crate) fn cpu_time(stat: &str, children: bool) -> Option<Duration> {
    /// `USER_HZ`, the same on every x86.
    const TICK: Duration = Duration::from_millis(10);
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(if children { 13 } else { 11 });
    let mut ticks = || fields.next()?.parse::<u32>().ok();
    Some(TICK * (ticks()? + ticks()?))
}

impl Emulator {
    /// Starts `command` with `folder` as working directory; it must write its console to `ttyS0` there.
    pub fn start(mut command: Command, folder: tempfile::TempDir, name: String) -> Result<Self> {
        let errors =
            File::create(folder.path().join("stderr")).context("create the emulator's log")?;
        command
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(errors.try_clone()?)
            .stderr(errors);
        Ok(Self { group: Group::spawn(&mut command)?, folder, name })
    }

    /// The emulator's working directory.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Output of serial line `index` so far.
    pub fn serial(&self, index: usize) -> String {
        let bytes = fs::read(self.folder.path().join(format!("ttyS{index}"))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\r', "")
    }

    /// The status, if it has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.group.ended()
    }

    /// Waits for its end, at most `limit`.
    pub fn wait(&mut self, limit: Duration) -> Result<Option<ExitStatus>> {
        self.group.wait(limit)
    }

    /// CPU time that it has used, in steps of 10 ms.
    pub fn cpu_time(&mut self) -> Result<Duration> {
        let path = format!("/proc/{}/stat", self.group.child().id());
        let stat = fs::read_to_string(&path).with_context(|| path.clone())?;
        cpu_time(&stat, false)
            .with_context(|| format!("{path}: not in the format of proc_pid_stat(5)"))
    }

    /// Stops it, keeps its console in the cache, and returns an error of one line: `what`, and the reason.
    pub fn fail(&mut self, what: &str) -> anyhow::Error {
        self.fail_with(what, String::new)
    }

    /// As [`Emulator::fail`]. If it still runs, what `state` returns is kept behind the console.
    pub fn fail_with(&mut self, what: &str, state: impl FnOnce() -> String) -> anyhow::Error {
        let ended = self.group.wait(Duration::from_millis(300)).ok().flatten();
        let console = self.serial(0);
        let complaint = complaints(&console).into_iter().next();
        let errors = fs::read_to_string(self.folder.path().join("stderr")).unwrap_or_default();
        let why = match (ended, complaint) {
            (_, Some(complaint)) => format!("the kernel reports: {complaint}"),
            (Some(status), None) => {
                let first = errors.lines().find(|line| !line.trim().is_empty());
                format!("the emulator ended ({status}): {}", first.unwrap_or("no reason given"))
            }
            (None, None) => format!(
                "last line on the console: {}",
                process::last_line(&console).unwrap_or("nothing")
            ),
        };
        let state = if ended.is_none() { state() } else { String::new() };
        match keep_console(&self.name, &(self.serial(0) + &state)) {
            Ok(path) => {
                anyhow::anyhow!("{}: {what}: {why} (console: {})", self.name, path.display())
            }
            Err(_) => anyhow::anyhow!("{}: {what}: {why}", self.name),
        }
    }
}

/// Writes a console to the cache, under `name`.
pub fn keep_console(name: &str, console: &str) -> Result<PathBuf> {
    let path = cache::folder("logs")?.join(format!("{}.console", name.replace([' ', '/'], "-")));
    cache::write(&path, console.as_bytes())?;
    Ok(path)
}

/// Lines in which a kernel reports an error of its own.
pub fn complaints(console: &str) -> Vec<String> {
    const SIGNS: [&str; 9] = [
        "Kernel panic",
        "BUG:",
        "Oops:",
        "WARNING:",
        "general protection fault",
        "soft lockup",
        "hard LOCKUP",
        "self-detected stall",
        "Call Trace:",
    ];
    console
        .lines()
        .filter(|line| SIGNS.iter().any(|sign| line.contains(sign)))
        .map(|line| line.trim().to_owned())
        .collect()
}

/// QEMU's control channel, used to inject faults.
#[derive(Debug)]
pub struct Control(BufReader<UnixStream>);

impl Control {
    /// Connects to the socket at `path`.
    pub fn connect(path: &Path) -> Result<Self> {
        let stream = UnixStream::connect(path).context("connect to QEMU's control channel")?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        let mut control = Self(BufReader::new(stream));
        control.read()?;
        control.execute("qmp_capabilities", json!({}))?;
        Ok(control)
    }

    /// Runs a QMP command and returns its result.
    pub fn execute(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let request = json!({ "execute": command, "arguments": arguments });
        writeln!(self.0.get_mut(), "{request}")?;
        loop {
            let mut answer = self.read()?;
            if let Some(error) = answer.get("error") {
                bail!("QEMU refuses {command}: {}", error["desc"].as_str().unwrap_or("no reason"));
            }
            if let Some(result) = answer.get_mut("return") {
                return Ok(result.take());
            }
        }
    }

    /// Runs a command of QEMU's human monitor ("mce 0 0 0xb200000000000000 0 0 0") and returns what it prints.
    pub fn monitor(&mut self, line: &str) -> Result<String> {
        let printed = self.execute("human-monitor-command", json!({ "command-line": line }))?;
        Ok(printed.as_str().unwrap_or_default().to_owned())
    }

    fn read(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.0.read_line(&mut line).context("read QEMU's control channel")?;
        serde_json::from_str(&line).context("QEMU's control channel ended")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_user_and_system_time() {
        let stat = "12 (a ) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 4 0 99";
        assert_eq!(cpu_time(stat, false), Some(Duration::from_secs(3)));
        assert_eq!(cpu_time("12 (a) S 1 2", false), None);
    }

    #[test]
    fn kernel_complaints_are_found() {
        let console = "[1.0] hello\n[2.0] BUG: unable to handle page fault\n\
                       [2.1] Kernel panic - not syncing\n";
        assert_eq!(complaints(console).len(), 2);
        assert!(complaints("[1.0] all is well\n").is_empty());
    }
}
