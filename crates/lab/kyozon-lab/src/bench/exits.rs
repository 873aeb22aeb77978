//! Table `exits`: how often Linux leaves for the hypervisor while the monitor watches its writes.

use super::cokernel::WATCHED;
use super::overhead::WORKLOADS;
use super::{described, qemu_version};
use crate::guest::Output;
use crate::kernels::{Kernel, SERIES};
use crate::{batch, cache, product, scenario, spec::Spec};
use anyhow::{Context, Result};
use kyozon_results::Row;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Runs of each kind of work.
const ROUNDS: usize = 5;
/// Time limit of a run, in real time.
const LIMIT: Duration = Duration::from_secs(3000);

/// Name and script: work that changes nothing of what is watched.
const QUIET: [(&str, &str); 3] = [("idle for a minute", "sleep 60"), WORKLOADS[0], WORKLOADS[1]];

/// The same for what makes Linux change its code or read-only data, and takes that back.
const CHANGES: [(&str, &str); 7] = [
    ("a module is loaded and unloaded", "rmmod dummy && insmod /kyozon/modules/*-dummy.ko"),
    (
        "a static key is switched on and off",
        "cd /proc/sys/kernel && echo 1 >sched_schedstats && echo 0 >sched_schedstats",
    ),
    (
        "a tracepoint is on for a while",
        "cd /t/events/sched/sched_switch && echo 1 >enable && sleep 0.1 && echo 0 >enable",
    ),
    (
        "a probe inside a function",
        "cd /t && echo 'p:k vfs_read+9' >kprobe_events && echo 1 >events/kprobes/enable && sleep 0.1 &&
         echo 0 >events/kprobes/enable && echo >kprobe_events",
    ),
    ("a BPF program at a function's entry", "bpf entry vfs_read 100"),
    (
        "a function is traced",
        "cd /t && echo vfs_read >set_ftrace_filter && echo function >current_tracer && sleep 0.1 &&
         echo nop >current_tracer",
    ),
    (
        "the functions vfs_* are traced",
        "cd /t && echo 'vfs_*' >set_ftrace_filter && echo function >current_tracer && sleep 0.1 &&
         echo nop >current_tracer && wc -l <set_ftrace_filter",
    ),
];

const PREPARE: &str = "mkdir -p /t && mount -t tracefs tracefs /t";
/// Exits for the ticks: of their timer, and for an NMI that it may have sent, when its counter wraps around.
const OF_TICKS: [&str; 3] = ["tick", "nmi", "nmi_end"];
const STATUS: &str = "kyozon status --json";

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    let mut table = described(results, "exits")?.version("qemu", &qemu_version()?);
    let (_, bpf) = scenario::compile(&cache::tree()?.join("tests/monitor/quiet/bpf.c"))?;
    for series in SERIES {
        let kernel = Kernel::fetch(series, "cloud", false)?;
        let mut spec = product::install(Spec::new(&kernel))?.file("/bin/bpf", 0o755, bpf.clone());
        spec.modules.push("dummy".into());
        let load = format!("load='--isolation vmm'\n{WATCHED}");
        let scripts = scripts(&load);
        let run = batch::run(&spec, &scripts, LIMIT)?;
        for (script, output) in scripts.iter().zip(&run.outputs) {
            output.expect_success().with_context(|| format!("{script:?} on {series}"))?;
        }
        for row in rows(&scripts, &run.outputs)? {
            table = table.row(row.group(series));
        }
        table = table.version(&format!("linux {series}"), &kernel.version);
    }
    table.write(results)?;
    Ok(())
}

fn work() -> impl Iterator<Item = (&'static str, &'static str)> {
    QUIET.into_iter().chain(CHANGES)
}

/// The scripts of a boot, with a status before and after each that is counted. The first run of a change does more
/// than later ones.
fn scripts(load: &str) -> Vec<&str> {
    let mut scripts = vec![PREPARE];
    scripts.extend(CHANGES.map(|(_, script)| script));
    scripts.extend([load, STATUS]);
    for _ in 0..ROUNDS {
        scripts.extend(work().flat_map(|(_, script)| [script, STATUS]));
    }
    scripts.push("kyozon unload");
    scripts
}

/// A row for each kind of work: exits other than ticks.
fn rows(scripts: &[&str], outputs: &[Output]) -> Result<Vec<Row>> {
    let steps = scripts.iter().zip(outputs);
    let statuses = steps.filter(|(script, _)| **script == STATUS);
    let exits: Vec<u64> =
        statuses.map(|(_, output)| exits(&output.stdout)).collect::<Result<_>>()?;
    let taken: Vec<u64> = exits.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let kinds = work().count();
    let row = |(at, (name, _)): (usize, (&str, &str))| -> Result<Row> {
        let samples: Vec<u64> = taken.iter().copied().skip(at).step_by(kinds).collect();
        Ok(Row::from_samples(name, "exits", &samples)?.counting("runs"))
    };
    work().enumerate().map(row).collect()
}

/// Linux's exits in a status, but those for ticks.
fn exits(status: &[u8]) -> Result<u64> {
    let status: Value = serde_json::from_slice(status)?;
    let exits = status["wall"]["exits"].as_object().context("no exits in the status")?;
    let counts = exits.iter().filter(|(reason, _)| !OF_TICKS.contains(&reason.as_str()));
    counts.map(|(_, count)| count.as_u64().context("a count of exits")).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_work_has_the_exits_between_its_statuses() {
        let scripts = scripts("load");
        let mut statuses = 0;
        let output = |script: &&str| {
            let mut stdout = Vec::new();
            if *script == STATUS {
                // The work numbered n of a round causes n exits.
                let before: usize = (0..statuses).map(|work| work % work_kinds()).sum();
                stdout = format!(
                    r#"{{"wall":{{"exits":{{"tick":{0},"nmi":{0},"watch":{before}}}}}}}"#,
                    100 * statuses
                )
                .into();
                statuses += 1;
            }
            Output { stdout, ..Output::default() }
        };
        let outputs: Vec<_> = scripts.iter().map(output).collect();
        let rows = rows(&scripts, &outputs).unwrap();
        let counts: Vec<_> = rows.iter().map(|row| (row.n, row.median as usize)).collect();
        let expected: Vec<_> = (0..work_kinds()).map(|at| (ROUNDS as u64, at)).collect();
        assert_eq!(counts, expected);
    }

    fn work_kinds() -> usize {
        QUIET.len() + CHANGES.len()
    }
}
