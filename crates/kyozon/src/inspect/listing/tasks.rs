//! Tasks, beside `/proc`.

use super::{numbers, Look, Row, NOWHERE};
use crate::inspect::dump::Dump;
use anyhow::{ensure, Result};
use kyozon_monitor::kernel::Kernel;
use kyozon_monitor::tasks;
use serde_json::json;
use std::collections::BTreeSet;

pub(super) fn look(kernel: &Kernel<'_, Dump>, is_live: bool) -> Result<(Look, bool)> {
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
