//! `kyozon inspect tasks`, `modules`, `bpf`, `hooks`, `memory`: what the kernel's memory has, beside what Linux tells
//! user space.
//!
//! On a machine that runs, both change all the time. A difference counts only if every one of several looks has it.

use super::bpf_ids;
use super::dump::Dump;
use super::module_files::Folder;
use super::subject::Subject;
use super::{Sources, FOUND, UNJUDGED};
use crate::groups::{size, table};
use anyhow::{ensure, Context, Result};
use clap::ValueEnum;
use kyozon_channel::events::printable;
use kyozon_monitor::kernel::Kernel;
use kyozon_monitor::{bpf, hooks, mappings, modules, tasks};
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;

/// Number of looks at a machine that runs, and maximum number while something says that it begins or ends: nothing does
/// for so long.
const LOOKS: usize = 5;
const MAX_LOOKS: usize = 200;
/// Times that a look is begun again because Linux changed a list while it was walked.
const TRIES: usize = 20;
/// The first namespace of process IDs (`PROC_PID_INIT_INO` in Linux's `proc_ns.h`), and that of this process.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";
const OWN_NAMESPACE: &str = "/proc/self/ns/pid";
/// Linux's listings of modules.
const MODULE_LIST: &str = "/proc/modules";
const MODULE_FOLDERS: &str = "/sys/module";
/// Linux's listing of BPF programs.
const BPF_IDS: &str = "bpf(2)";
/// What lacks code that nobody owns, and what lacks memory that can be both written and executed.
const LISTED: &str = "a listed module or program";
const READ_ONLY: &str = "read-only memory";
/// What lacks an object that only Linux's listings have.
const NOWHERE: &str = "any structure of the kernel";

/// What to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// Processes, and threads that differ
    Tasks,
    /// Modules
    Modules,
    /// BPF programs
    Bpf,
    /// What Linux calls outside of its own code: handlers, timers, operations
    Hooks,
    /// What the kernel can execute
    Memory,
}

/// An object in the kernel's memory, or in Linux's listings.
#[derive(Clone, Debug, Default, PartialEq)]
struct Row {
    /// The cells of its line, and its place among the lines.
    cells: Vec<String>,
    order: u64,
    /// Whether it has a line although nothing differs.
    is_shown: bool,
    /// Whether it says that it begins or ends: Linux may be adding it to its structures, or removing it.
    is_in_flux: bool,
    /// Where it should be and is not.
    absent: BTreeSet<&'static str>,
    /// The same for programs.
    object: Value,
}

/// The rows of one look, by what tells an object from others.
type Look = BTreeMap<String, Row>;

/// A list for people or programs.
#[derive(Debug)]
pub struct Listing {
    titles: &'static [&'static str],
    name: &'static str,
    rows: Vec<Row>,
    /// Whether every structure was walked to its end.
    is_complete: bool,
    /// What the list of symbols hides or forges, in one line.
    pub warning: Option<String>,
}

/// Lists `what` of the kernel in `sources`.
///
/// # Errors
///
/// Those of [`inspect`](super::inspect), or Linux does not show this process what it shows others.
pub fn list(what: What, sources: &Sources) -> Result<Listing> {
    let subject = Subject::open(sources.image.as_deref(), sources.package.as_deref())?;
    if subject.is_live && what == What::Tasks {
        let own = fs::read_link(OWN_NAMESPACE).context(OWN_NAMESPACE)?;
        ensure!(
            own.as_os_str() == FIRST_NAMESPACE,
            "this process sees only the processes of a container: run it outside"
        );
    }
    let mut agreed = Look::new();
    let mut is_complete = true;
    subject.with_kernel(|kernel| {
        let files = match what {
            What::Modules | What::Hooks => {
                subject.module_files(kernel, sources.modules.as_deref())?
            }
            _ => None,
        };
        for number in 1.. {
            let mut look = Look::new();
            for _ in 0..if subject.is_live { TRIES } else { 1 } {
                subject.pause();
                (look, is_complete) = match what {
                    What::Tasks => tasks(kernel, subject.is_live)?,
                    What::Modules => modules(kernel, subject.is_live, files.as_ref())?,
                    What::Bpf => programs(kernel, subject.is_live)?,
                    What::Hooks => hooks(kernel, files.as_ref())?,
                    What::Memory => memory(kernel)?,
                };
                if is_complete {
                    break;
                }
            }
            agreed = if number == 1 { look } else { agree(&agreed, look) };
            let waits = agreed.values().any(|row| row.is_in_flux && !row.absent.is_empty());
            if !subject.is_live {
                is_complete &= !waits;
                agreed.values_mut().filter(|row| row.is_in_flux).for_each(|row| row.absent.clear());
            }
            if !subject.is_live || number >= LOOKS && (!waits || number >= MAX_LOOKS) {
                break;
            }
        }
        Ok(())
    })?;
    let (name, titles): (_, &[_]) = match what {
        What::Tasks => ("task", &["PID", "TID", "NAME", "NOT IN"]),
        What::Modules => ("module", &["NAME", "SIZE", "TAINTS", "FILE", "NOT IN"]),
        What::Bpf => ("BPF program", &["ID", "NAME", "BYTES", "NOT IN"]),
        What::Hooks => ("hook", &["KIND", "OBJECT", "LEADS TO", "OWNER", "FILE", "NOT IN"]),
        What::Memory => ("piece", &["START", "SIZE", "ACCESS", "OWNER", "NOT IN"]),
    };
    Ok(Listing { titles, name, rows: sorted(agreed), is_complete, warning: subject.warning })
}

/// The rows of the look `now`, with the differences that the looks `before` it agreed on.
fn agree(before: &Look, now: Look) -> Look {
    let settle = |(key, mut row): (String, Row)| {
        let known = before.get(&key);
        row.absent.retain(|place| known.is_some_and(|known| known.absent.contains(place)));
        // An object of Linux's listings that ended before memory was read is no difference.
        (row.object != Value::Null || !row.absent.is_empty()).then_some((key, row))
    };
    now.into_iter().filter_map(settle).collect()
}

fn sorted(look: Look) -> Vec<Row> {
    let mut rows: Vec<Row> = look.into_values().collect();
    rows.sort_by(|a, b| (a.order, &a.cells).cmp(&(b.order, &b.cells)));
    rows
}

/// A name from Linux's listings, in the form in which the monitor shows one from memory. It is printed, and an intruder
/// may have chosen it.
fn shown(name: &[u8]) -> String {
    name.iter().map(|byte| char::from(printable(*byte))).collect()
}

/// The names of the entries of the folder at `path` that are numbers.
fn numbers(path: &str) -> Vec<u32> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn tasks(kernel: &Kernel<'_, Dump>, is_live: bool) -> Result<(Look, bool)> {
    let mut told = BTreeSet::new();
    for process in numbers("/proc").into_iter().filter(|_| is_live) {
        let threads = numbers(&format!("/proc/{process}/task"));
        told.extend(threads.into_iter().map(|thread| (process, thread)));
    }
    ensure!(!is_live || !told.is_empty(), "/proc has no processes: mount it");
    let mut listed = tasks::listing::list(kernel)?;
    // Of two tasks with the same PIDs, Linux tells of the one that it can find.
    listed.tasks.sort_by_key(|task| (task.missing.len(), task.is_in_flux));
    let mut look = Look::new();
    for task in listed.tasks {
        let pids = (task.process, task.pid);
        let mut absent: BTreeSet<&str> = task.missing.iter().copied().collect();
        if is_live && !told.contains(&pids) {
            absent.insert("/proc");
        }
        told.remove(&pids);
        let row = Row {
            cells: vec![task.process.to_string(), task.pid.to_string(), task.name.clone()],
            order: u64::from(task.process),
            is_shown: task.is_leader,
            is_in_flux: task.is_in_flux,
            object: json!({
                "pid": task.process,
                "tid": task.pid,
                "name": task.name,
                "address": format!("{:#x}", task.address),
                "kernel_thread": task.is_kernel_thread,
            }),
            absent,
        };
        look.insert(format!("{:#x}/{}", task.address, task.start), row);
    }
    for (process, thread) in told {
        let row = Row {
            cells: vec![process.to_string(), thread.to_string(), "-".into()],
            order: u64::from(process),
            absent: BTreeSet::from([NOWHERE]),
            ..Row::default()
        };
        look.insert(format!("{process}/{thread}"), row);
    }
    Ok((look, listed.is_complete))
}

fn modules(
    kernel: &Kernel<'_, Dump>,
    is_live: bool,
    files: Option<&Folder>,
) -> Result<(Look, bool)> {
    let mut told: [(&'static str, BTreeSet<String>); 2] =
        [(MODULE_LIST, BTreeSet::new()), (MODULE_FOLDERS, BTreeSet::new())];
    if is_live {
        let list = fs::read(MODULE_LIST).context(MODULE_LIST)?;
        let name = |line: &[u8]| shown(line.split(|byte| *byte == b' ').next().unwrap_or_default());
        let lines = list.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        told[0].1 = lines.map(name).collect();
        let folders = fs::read_dir(MODULE_FOLDERS).context(MODULE_FOLDERS)?.flatten();
        // Code that is built in has a folder without this file.
        let folders = folders.filter(|folder| folder.path().join("initstate").exists());
        told[1].1 = folders.map(|folder| shown(folder.file_name().as_bytes())).collect();
    }
    let mut look = Look::new();
    for module in modules::listing::list(kernel)?.unwrap_or_default() {
        let mut absent: BTreeSet<&str> = module.missing.iter().copied().collect();
        for (place, names) in told.iter_mut() {
            if !names.remove(&module.name) && is_live && module.is_live {
                absent.insert(place);
            }
        }
        let file = file(files, &module);
        let row = Row {
            cells: vec![
                module.name.clone(),
                size(module.bytes),
                taints(module.taints),
                file.clone().unwrap_or_else(|| "-".into()),
            ],
            is_shown: true,
            object: json!({
                "name": module.name,
                "address": format!("{:#x}", module.address),
                "bytes": module.bytes,
                "taints": taints(module.taints),
                "file": file,
                "live": module.is_live,
            }),
            absent,
            ..Row::default()
        };
        look.insert(format!("{:#x}", module.address), row);
    }
    let [(_, listed), (_, folders)] = told;
    for name in listed.into_iter().chain(folders) {
        let row = Row {
            cells: vec![name.clone(), "-".into(), "-".into(), "-".into()],
            absent: BTreeSet::from([NOWHERE]),
            ..Row::default()
        };
        look.insert(name, row);
    }
    Ok((look, true))
}

fn programs(kernel: &Kernel<'_, Dump>, is_live: bool) -> Result<(Look, bool)> {
    let mut told = if is_live { bpf_ids::told()? } else { BTreeSet::new() };
    let mut listed = bpf::listing::list(kernel)?;
    // Of two programs with the same ID, Linux tells of the one that it can find.
    listed.programs.sort_by_key(|program| program.missing.len());
    let mut look = Look::new();
    for program in listed.programs {
        let mut absent: BTreeSet<&str> = program.missing.iter().copied().collect();
        if !told.remove(&program.id) && is_live {
            absent.insert(BPF_IDS);
        }
        let (address, bytes) = program.code;
        let name = if program.name.is_empty() { "-" } else { &program.name };
        let row = Row {
            cells: vec![program.id.to_string(), name.into(), bytes.to_string()],
            order: program.id,
            is_shown: true,
            object: json!({
                "id": program.id,
                "name": program.name,
                "address": format!("{:#x}", program.address),
                "code": format!("{address:#x}"),
                "bytes": bytes,
            }),
            absent,
            ..Row::default()
        };
        look.insert(format!("{:#x}/{}", program.address, program.id), row);
    }
    // What was not walked may have the rest.
    for id in told.into_iter().filter(|_| listed.is_complete) {
        let row = Row {
            cells: vec![id.to_string(), "-".into(), "-".into()],
            order: id,
            absent: BTreeSet::from([NOWHERE]),
            ..Row::default()
        };
        look.insert(id.to_string(), row);
    }
    Ok((look, listed.is_complete))
}

/// The letters of a module's taints, as Linux prints them (`Documentation/admin-guide/tainted-kernels.rst`).
fn taints(bits: u64) -> String {
    let letters = "PFSRMBUDAWCIOELKXTN".chars().enumerate();
    let set: String = letters.filter(|(bit, _)| bits >> bit & 1 != 0).map(|(_, c)| c).collect();
    if set.is_empty() {
        "-".into()
    } else {
        set
    }
}

/// The file of `module`, for people.
fn file(files: Option<&Folder>, module: &modules::listing::Module) -> Option<String> {
    let path = files?.path(&module.name, &module.notes)?;
    Some(path.display().to_string())
}

fn hooks(kernel: &Kernel<'_, Dump>, files: Option<&Folder>) -> Result<(Look, bool)> {
    let listed = hooks::listing::list(kernel)?;
    let modules = modules::listing::list(kernel)?.unwrap_or_default();
    let paths: BTreeMap<String, String> = modules
        .iter()
        .filter_map(|module| Some((format!("module {}", module.name), file(files, module)?)))
        .collect();
    let mut look = Look::new();
    for hook in listed.hooks {
        let target = format!("{:#x}", hook.target);
        let file = hook.owner.as_ref().and_then(|owner| paths.get(owner));
        let row = Row {
            cells: vec![
                hook.kind.into(),
                hook.object.clone(),
                target.clone(),
                hook.owner.clone().unwrap_or_else(|| "nobody".into()),
                file.cloned().unwrap_or_else(|| "-".into()),
            ],
            is_shown: true,
            absent: hook.owner.is_none().then_some(LISTED).into_iter().collect(),
            object: json!({
                "kind": hook.kind,
                "object": hook.object,
                "function": hook.function,
                "target": target,
                "owner": hook.owner,
                "file": file,
            }),
            ..Row::default()
        };
        look.insert(row.cells.join("\0"), row);
    }
    Ok((look, listed.is_complete))
}

fn memory(kernel: &Kernel<'_, Dump>) -> Result<(Look, bool)> {
    let listed = mappings::listing::list(kernel)?;
    let mut look = Look::new();
    for piece in listed.pieces {
        let bytes = piece.end - piece.start;
        let access = if piece.is_writable { "rwx" } else { "r-x" };
        let absent =
            [piece.owner.is_none().then_some(LISTED), piece.is_writable.then_some(READ_ONLY)];
        let row = Row {
            cells: vec![
                format!("{:#x}", piece.start),
                size(bytes),
                access.into(),
                piece.owner.clone().unwrap_or_else(|| "nobody".into()),
            ],
            order: piece.start,
            is_shown: true,
            absent: absent.into_iter().flatten().collect(),
            object: json!({
                "start": format!("{:#x}", piece.start),
                "bytes": bytes,
                "writable": piece.is_writable,
                "owner": piece.owner,
            }),
            ..Row::default()
        };
        look.insert(format!("{:#x}", piece.start), row);
    }
    let lacks_tables = !kernel.memory.take_lacking().is_empty();
    Ok((look, listed.is_complete && !lacks_tables))
}

impl Listing {
    fn differences(&self) -> usize {
        self.rows.iter().filter(|row| !row.absent.is_empty()).count()
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        match self.differences() {
            0 if self.is_complete => 0,
            0 => UNJUDGED,
            _ => FOUND,
        }
    }

    /// The list as JSON.
    pub fn json(&self) -> Value {
        let row = |row: &Row| {
            let mut object = match &row.object {
                Value::Null => json!({ "line": row.cells }),
                object => object.clone(),
            };
            object["not_in"] = json!(row.absent);
            object
        };
        json!({
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "differences": self.differences(),
            "complete": self.is_complete,
            "warning": self.warning,
        })
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |row: &Row| {
            let absent: Vec<_> = row.absent.iter().copied().collect();
            row.cells.iter().cloned().chain([absent.join(", ")]).collect::<Vec<_>>()
        };
        let titles = self.titles.iter().map(|&title| title.to_owned()).collect();
        let shown = self.rows.iter().filter(|row| row.is_shown || !row.absent.is_empty());
        let lines: Vec<Vec<String>> = [titles].into_iter().chain(shown.map(line)).collect();
        write!(f, "{}", table(&lines))?;
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let (count, differences) = (self.rows.len(), self.differences());
        let name = self.name;
        write!(
            f,
            "verdict: {count} {name}{}, {differences} difference{}",
            plural(count),
            plural(differences)
        )?;
        if !self.is_complete {
            write!(f, ", but not every structure could be walked to its end")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
