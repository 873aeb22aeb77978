//! `kyozon inspect tasks`, `modules`, `bpf`, `sockets`, `hooks`, `memory`, `mounts`, `cpus`, `rings`: what the
//! kernel's memory has, beside what Linux tells user space.
//!
//! On a machine that runs, both change all the time. A difference counts only if every one of several looks has it.

mod cpus;
mod hooks;
mod memory;
mod modules;
mod mounts;
mod programs;
mod rings;
mod sockets;
mod tasks;

use super::subject::Subject;
use super::{Sources, FOUND, UNJUDGED};
use crate::groups::table;
use anyhow::{ensure, Context, Result};
use clap::ValueEnum;
use kyozon_channel::events::printable;
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

/// Number of looks at a machine that runs, and maximum number while something says that it begins or ends: nothing does
/// for so long.
const LOOKS: usize = 5;
const MAX_LOOKS: usize = 200;
/// Times that a look is begun again because Linux changed a list while it was walked.
const TRIES: usize = 20;
/// Time after which no look is begun again, and none beyond [`LOOKS`] is made: whoever makes a list endless must not
/// delay the answer for long.
const PATIENCE: Duration = Duration::from_secs(5);
/// The first namespace of process IDs (`PROC_PID_INIT_INO` in Linux's `proc_ns.h`), and that of this process.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";
const OWN_NAMESPACE: &str = "/proc/self/ns/pid";
/// What lacks code that nobody owns.
const LISTED: &str = "a listed module or program";
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
    /// Sockets of TCP, UDP and raw IP, and those that get a device's packets
    Sockets,
    /// What Linux calls outside of its own code: handlers, timers, operations
    Hooks,
    /// What the kernel can execute
    Memory,
    /// Mounts of the first process's namespace
    Mounts,
    /// CPUs, and the tasks that run on them
    Cpus,
    /// Instances of io_uring, and who uses them
    Rings,
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
    let subject = Subject::open(sources.image.as_deref(), sources.package.as_deref(), false)?;
    if subject.is_live && matches!(what, What::Tasks | What::Mounts) {
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
        let begun = Instant::now();
        for number in 1.. {
            let mut look = Look::new();
            for _ in 0..if subject.is_live { TRIES } else { 1 } {
                subject.pause();
                (look, is_complete) = match what {
                    What::Tasks => tasks::look(kernel, subject.is_live)?,
                    What::Modules => modules::look(kernel, subject.is_live, files.as_ref())?,
                    What::Bpf => programs::look(kernel, subject.is_live)?,
                    What::Sockets => sockets::look(kernel, subject.is_live)?,
                    What::Hooks => hooks::look(kernel, files.as_ref())?,
                    What::Memory => memory::look(kernel)?,
                    What::Mounts => mounts::look(kernel, subject.is_live)?,
                    What::Cpus => cpus::look(kernel, subject.is_live)?,
                    What::Rings => rings::look(kernel)?,
                };
                if is_complete || begun.elapsed() > PATIENCE {
                    break;
                }
            }
            agreed = if number == 1 { look } else { agree(&agreed, look) };
            let waits = agreed.values().any(|row| row.is_in_flux && !row.absent.is_empty());
            if !subject.is_live {
                is_complete &= !waits;
                agreed.values_mut().filter(|row| row.is_in_flux).for_each(|row| row.absent.clear());
            }
            let is_late = number >= MAX_LOOKS || begun.elapsed() > PATIENCE;
            if !subject.is_live || number >= LOOKS && (!waits || is_late) {
                break;
            }
        }
        Ok(())
    })?;
    let (name, titles): (_, &[_]) = match what {
        What::Tasks => ("task", &["PID", "TID", "NAME", "NOT IN"]),
        What::Modules => ("module", &["NAME", "SIZE", "TAINTS", "FILE", "NOT IN"]),
        What::Bpf => ("BPF program", &["ID", "NAME", "BYTES", "NOT IN"]),
        What::Sockets => ("socket", &["PROTOCOL", "LOCAL", "REMOTE", "INODE", "NETWORK", "NOT IN"]),
        What::Hooks => ("hook", &["KIND", "OBJECT", "LEADS TO", "OWNER", "FILE", "NOT IN"]),
        What::Memory => ("piece", &["START", "SIZE", "ACCESS", "OWNER", "NOT IN"]),
        What::Mounts => ("mount", &["MOUNT ID", "TYPE", "SOURCE", "POINT", "NOT IN"]),
        What::Cpus => {
            ("CPU", &["CPU", "ONLINE", "PID", "TASK", "DESCRIPTORS", "TASK STATE", "NOT IN"])
        }
        What::Rings => {
            ("ring", &["PID", "NAME", "REQUESTS", "POLLED BY", "FILES", "BUFFERS", "NOT IN"])
        }
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
