//! What tests of confined kernels share. Not every test uses all of it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The program under test: `KYOZON_PROGRAM`, or the one that cargo built for this test.
pub fn program() -> PathBuf {
    std::env::var_os("KYOZON_PROGRAM")
        .map_or_else(|| env!("CARGO_BIN_EXE_kyozon-linux").into(), PathBuf::from)
}

/// The kernel image.
pub fn linux() -> PathBuf {
    std::env::var_os("KYOZON_LINUX").expect("KYOZON_LINUX names a kernel image").into()
}

/// Runs a tool of the host. It must succeed.
pub fn tool(name: &str, arguments: &[&str], path: &Path) {
    let out = Command::new(name)
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .args(arguments)
        .arg(path)
        .output()
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    let text =
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{name} {arguments:?}: {text}");
}

/// A new image.
pub fn image(path: &Path, megabytes: u64, make: (&str, &[&str])) {
    let file = std::fs::File::create(path).expect("an image");
    file.set_len(megabytes << 20).expect("its size");
    tool(make.0, make.1, path);
}

/// A `kyozon-linux fs` in a folder.
pub fn fs(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.arg("fs").args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

/// Waits for a process, which is killed after `limit`. Time in which this process did not run does not count: it was
/// stopped, or the machine is loaded, and so was the child.
pub fn finish(mut child: Child, limit: Duration) -> Option<Output> {
    /// Longer than a turn takes on an idle machine.
    const TURN: Duration = Duration::from_millis(10);
    let pid = child.id();
    let (mut taken, mut last) = (Duration::ZERO, Instant::now());
    // The pipes are emptied by wait_with_output, so it gets a thread of its own.
    let stdout = child.stdout.take().map(drain);
    let stderr = child.stderr.take().map(drain);
    let status = loop {
        match child.try_wait().expect("a child") {
            Some(status) => break status,
            None if taken > limit => {
                let _ = child.kill();
                let _ = child.wait();
                eprintln!("process {pid} took longer than {limit:?}");
                return None;
            }
            None => {
                thread::sleep(Duration::from_millis(2));
                taken += last.elapsed().min(TURN);
                last = Instant::now();
            }
        }
    };
    let read = |pipe: Option<thread::JoinHandle<Vec<u8>>>| {
        pipe.map(|pipe| pipe.join().expect("no panic")).unwrap_or_default()
    };
    Some(Output { status, stdout: read(stdout), stderr: read(stderr) })
}

/// Reads a pipe to its end, and keeps its start.
fn drain(mut pipe: impl std::io::Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let (mut kept, mut buffer) = (Vec::new(), [0; 1 << 16]);
        while let Ok(bytes @ 1..) = pipe.read(&mut buffer) {
            let room = (1usize << 20).saturating_sub(kept.len());
            kept.extend_from_slice(&buffer[..bytes.min(room)]);
        }
        kept
    })
}

/// The child processes of a process.
pub fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let list = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(list.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
    }
    found
}

/// Whether a process exists and is no zombie.
pub fn runs(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits until a condition holds, for 10 seconds.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}
