//! `kyozon typed ps`: the programs in kernel mode, by the processes that have the module's device open.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use super::kernel::DEVICE;
use crate::groups::{age, resident, size, table};

/// A process that has the device open.
#[derive(Debug, PartialEq)]
struct Process {
    pid: i32,
    /// Its state, as `/proc/PID/stat` says it.
    state: String,
    /// Milliseconds of a CPU that it has used.
    cpu_ms: u64,
    command: String,
}

/// The processes, as text or as JSON. Those that this user may not look at are omitted.
pub(super) fn run(as_json: bool) -> Result<String> {
    let processes = processes(Path::new("/proc"), rustix::param::clock_ticks_per_second())?;
    if as_json {
        let list = processes.iter().map(|p| {
            json!({
                "pid": p.pid,
                "state": p.state,
                "cpu_ms": p.cpu_ms,
                "resident": resident(p.pid),
                "command": p.command,
            })
        });
        return Ok(json!(list.collect::<Vec<_>>()).to_string() + "\n");
    }
    let mut rows = vec![["PID", "STATE", "CPU", "RESIDENT", "COMMAND"].map(str::to_owned)];
    rows.extend(processes.into_iter().map(|p| {
        let resident = resident(p.pid).map_or("-".into(), size);
        [p.pid.to_string(), p.state, age(p.cpu_ms), resident, p.command]
    }));
    Ok(table(&rows))
}

/// The processes below `proc` that have the device open, by their numbers.
fn processes(proc: &Path, ticks_per_second: u64) -> Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(proc).with_context(|| proc.display().to_string())? {
        let path = entry.with_context(|| proc.display().to_string())?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(pid) = name.and_then(|name| name.parse().ok()) else { continue };
        // It may end meanwhile.
        found.extend(process(&path, pid, ticks_per_second));
    }
    found.sort_by_key(|process| process.pid);
    Ok(found)
}

fn process(folder: &Path, pid: i32, ticks_per_second: u64) -> Option<Process> {
    let mut descriptors = fs::read_dir(folder.join("fd")).ok()?.flatten();
    descriptors.find(|fd| fs::read_link(fd.path()).is_ok_and(|target| target == *DEVICE))?;
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    // The name before them may contain anything: proc(5).
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field)?.parse::<u64>().ok();
    let command = fs::read(folder.join("cmdline")).ok()?;
    let words = command.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(|word| word.escape_ascii().to_string()).collect();
    Some(Process {
        pid,
        state: fields.first()?.to_string(),
        cpu_ms: (ticks(11)? + ticks(12)?) * 1000 / ticks_per_second,
        command: words.join(" "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn those_that_have_the_device_open_are_found() {
        let proc = tempfile::tempdir().unwrap();
        let make = |pid: &str, target: &str, stat: &str| {
            let folder = proc.path().join(pid);
            fs::create_dir_all(folder.join("fd")).unwrap();
            symlink("/dev/null", folder.join("fd/0")).unwrap();
            symlink(target, folder.join("fd/3")).unwrap();
            fs::write(folder.join("stat"), stat).unwrap();
            fs::write(folder.join("cmdline"), b"kyozon\0typed\0run\0a\x1bb\0").unwrap();
        };
        let stat = "R 1 1 1 0 -1 4194304 5 0 0 0 250 50 0 0 20 0";
        make("20", DEVICE, &format!("20 (a) b) {stat}"));
        make("3", DEVICE, &format!("3 (kyozon) {stat}"));
        make("4", "/dev/zero", &format!("4 (kyozon) {stat}"));
        make("5", DEVICE, "5 (torn");
        make("self", DEVICE, &format!("6 (kyozon) {stat}"));
        let found = processes(proc.path(), 100).unwrap();
        let process = |pid| Process {
            pid,
            state: "R".into(),
            cpu_ms: 3000,
            command: r"kyozon typed run a\x1bb".into(),
        };
        assert_eq!(found, [process(3), process(20)]);
    }
}
