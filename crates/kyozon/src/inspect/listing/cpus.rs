//! CPUs and the tasks that run on them, beside sysfs.

use super::{Look, Row, NOWHERE};
use crate::inspect::dump::Dump;
use anyhow::{Context, Result};
use kyozon_monitor::cpus::{self, Cpus};
use kyozon_monitor::kernel::Kernel;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;

/// Linux's listing of the CPUs on which it runs.
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// What lacks a task that runs and is in none of Linux's structures.
const TASK_LISTS: &str = "any list of tasks";
/// Maximum number of a CPU (`CONFIG_NR_CPUS_RANGE_END` of Linux for x86).
const MAX_CPU: u64 = 8191;

pub(super) fn look(kernel: &Kernel<'_, Dump>, is_live: bool) -> Result<(Look, bool)> {
    let told = match is_live {
        true => {
            let text = fs::read_to_string(ONLINE).context(ONLINE)?;
            Some(numbers(&text).with_context(|| format!("{ONLINE}: no list of CPUs"))?)
        }
        false => None,
    };
    let listed = cpus::list(kernel)?.unwrap_or_default();
    let is_complete = listed.is_complete;
    Ok((rows(listed, told), is_complete))
}

/// The numbers in a list like `0-3,5`; `None` if it is none.
fn numbers(text: &str) -> Option<BTreeSet<u64>> {
    let mut all = BTreeSet::new();
    for range in text.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        all.extend((last <= MAX_CPU).then_some(first..=last)?);
    }
    Some(all)
}

fn rows(listed: Cpus, told: Option<BTreeSet<u64>>) -> Look {
    let is_told = told.is_some();
    let mut told = told.unwrap_or_default();
    let mut look = Look::new();
    for cpu in listed.cpus {
        let mut absent = BTreeSet::new();
        match (cpu.is_online, told.remove(&cpu.number)) {
            (true, false) if is_told => drop(absent.insert(ONLINE)),
            (false, true) => drop(absent.insert(NOWHERE)),
            _ => {}
        }
        let [descriptors, task_state] =
            [cpu.descriptors, cpu.task_state].map(|address| format!("{address:#x}"));
        let unknown = || "-".to_owned();
        let row = Row {
            cells: vec![
                cpu.number.to_string(),
                if cpu.is_online { "yes" } else { "no" }.into(),
                cpu.task.as_ref().map_or_else(unknown, |task| task.pid.to_string()),
                cpu.task.as_ref().map_or_else(unknown, |task| task.name.clone()),
                descriptors.clone(),
                task_state.clone(),
            ],
            order: cpu.number,
            is_shown: true,
            object: json!({
                "cpu": cpu.number,
                "online": cpu.is_online,
                "pid": cpu.task.as_ref().map(|task| task.pid),
                "name": cpu.task.as_ref().map(|task| &task.name),
                "task": cpu.task.as_ref().map(|task| format!("{:#x}", task.address)),
                "descriptors": descriptors,
                "task_state": task_state,
            }),
            absent,
            ..Row::default()
        };
        // A row of its own, by the task: only one that runs at each look counts, on whichever CPU.
        if let Some(task) = cpu.task.filter(|task| task.is_unlisted) {
            let row = Row {
                absent: BTreeSet::from([TASK_LISTS]),
                is_in_flux: task.is_in_flux,
                object: serde_json::Value::Null,
                ..row.clone()
            };
            look.insert(format!("{:#x}/{}", task.address, task.start), row);
        }
        look.insert(cpu.number.to_string(), row);
    }
    for number in told {
        let unknown = ["-"; 5].map(str::to_owned);
        let row = Row {
            cells: [number.to_string()].into_iter().chain(unknown).collect(),
            order: number,
            absent: BTreeSet::from([NOWHERE]),
            ..Row::default()
        };
        look.insert(number.to_string(), row);
    }
    look
}

#[cfg(test)]
mod tests {
    use super::super::agree;
    use super::*;
    use kyozon_monitor::cpus::{Cpu, Running};

    /// Two CPUs on which Linux runs, and one that could be added. `pid` runs on the CPU `on`.
    fn listed(on: u64, pid: u32, is_unlisted: bool) -> Cpus {
        let cpu = |number| {
            let (pid, is_unlisted) = if number == on { (pid, is_unlisted) } else { (0, false) };
            let name = format!("task {pid}");
            let (address, is_in_flux) = (u64::from(pid) << 12, false);
            let task = Running { address, pid, start: 7, name, is_unlisted, is_in_flux };
            Cpu {
                number,
                is_online: number < 2,
                task: Some(task),
                descriptors: 0x1000,
                task_state: 0x2000,
            }
        };
        Cpus { cpus: (0..3).map(cpu).collect(), is_complete: true }
    }

    fn differences(look: Look) -> Vec<(String, Vec<&'static str>)> {
        let differing = look.into_values().filter(|row| !row.absent.is_empty());
        differing.map(|row| (row.cells[2].clone(), row.absent.into_iter().collect())).collect()
    }

    #[test]
    fn lists_of_cpus_are_read() {
        let read = |text| numbers(text).map(|all| all.into_iter().collect::<Vec<_>>());
        assert_eq!(read("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!((read("3"), read("\n")), (Some(vec![3]), Some(vec![])));
        for wrong in ["x", "0-", "1-2-3", "-1", "0-8192", "0-18446744073709551615"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn cpus_that_linux_hides_or_invents_differ() {
        let told = |numbers: &[u64]| Some(numbers.iter().copied().collect());
        let differing = |told| differences(rows(listed(1, 5, false), told));
        assert_eq!((differing(told(&[0, 1])), differing(None)), (vec![], vec![]));
        assert_eq!(differing(told(&[0])), [("5".to_owned(), vec![ONLINE])]);
        let invented = |pid: &str| (pid.to_owned(), vec![NOWHERE]);
        assert_eq!(differing(told(&[0, 1, 2, 3])), [invented("0"), invented("-")]);
    }

    #[test]
    fn unlisted_task_counts_if_it_runs_at_each_look() {
        let agreed = |looks: [Cpus; 3]| {
            let looks = looks.into_iter().map(|listed| rows(listed, None));
            looks.reduce(|before, now| agree(&before, now)).unwrap_or_default()
        };
        let hidden = |on| listed(on, 5, true);
        let found = agreed([hidden(1), hidden(0), hidden(1)]);
        assert_eq!(differences(found), [("5".to_owned(), vec![TASK_LISTS])]);
        let found = agreed([hidden(1), listed(1, 6, true), hidden(1)]);
        assert_eq!((found.len(), differences(found)), (3, vec![]));
        let found = agreed([hidden(1), listed(1, 6, false), hidden(1)]);
        assert_eq!((found.len(), differences(found)), (3, vec![]));
    }
}
