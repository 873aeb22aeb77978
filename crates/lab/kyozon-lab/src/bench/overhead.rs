//! Table `overhead`: the share of Linux's time that the monitor takes, at the default period and budget.

use super::cokernel::WATCHED;
use super::{described, qemu_version, slower_percent};
use crate::guest::Output;
use crate::kernels::{Kernel, SERIES};
use crate::{batch, product, spec::Spec};
use anyhow::{Context, Result};
use kyozon_results::Row;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Runs of each workload in each phase. Work that waits takes some of Linux's ticks of 4 ms more or less: only means of
/// many runs are known to a part of a per cent.
const REPETITIONS: usize = 30;

/// Name and script: about a second of instructions each. Waiting for a child ends at a tick of Linux's own now and
/// then, so that shorter work would be measured in steps of its 4 ms.
pub const WORKLOADS: [(&str, &str); 2] = [
    ("CPU-bound", "for i in 1 2 3 4; do sha256sum /bin/busybox; done >/dev/null"),
    ("fork-bound", "i=0; while [ $i -lt 2000 ]; do (true); i=$((i + 1)); done"),
];

/// Name of each phase, and the script that begins it. All are in one boot, in this order.
const PHASES: [(&str, &str); 3] = [("before", "true"), ("watched", WATCHED), ("after", "true")];

const STATUS: &str = "kyozon status --json";
const UNLOAD: &str = "kyozon unload";

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    let mut table = described(results, "overhead")?.version("qemu", &qemu_version()?);
    for series in SERIES {
        let kernel = Kernel::fetch(series, "cloud", false)?;
        let spec = product::install(Spec::new(&kernel))?;
        let scripts = scripts();
        let run = batch::run(&spec, &scripts, Duration::from_secs(3000))?;
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

/// The scripts of a boot.
fn scripts() -> Vec<&'static str> {
    // The first work after boot differs from later work, so it is done once and not counted.
    let mut scripts: Vec<_> = WORKLOADS.iter().map(|(_, script)| *script).collect();
    for (_, begin) in PHASES {
        scripts.push(begin);
        for _ in 0..REPETITIONS {
            scripts.extend(WORKLOADS.iter().map(|(_, script)| *script));
            if begin == WATCHED {
                scripts.push(STATUS);
            }
        }
        if begin.contains("kyozon load") {
            scripts.push(UNLOAD);
        }
    }
    scripts
}

/// A row for each workload in each phase, and one for each check.
fn rows(scripts: &[&str], outputs: &[Output]) -> Result<Vec<Row>> {
    let mut samples = vec![[const { Vec::new() }; WORKLOADS.len()]; PHASES.len()];
    let mut checks: Vec<(String, Vec<f64>)> = Vec::new();
    let mut phase = 0;
    for (script, output) in scripts.iter().zip(outputs).skip(WORKLOADS.len()) {
        if let Some(number) = WORKLOADS.iter().position(|(_, work)| work == script) {
            samples[phase][number].push(output.ticks());
            if samples[phase].iter().all(|of| of.len() == REPETITIONS) {
                phase += 1;
            }
        } else if *script == STATUS {
            shares(&output.stdout, &mut checks)?;
        }
    }
    let mut rows = Vec::new();
    for (number, (workload, _)) in WORKLOADS.iter().enumerate() {
        let mut before = None;
        for ((phase, _), samples) in PHASES.iter().zip(&samples) {
            let row = Row::from_samples(
                &format!("{workload}, {phase}"),
                "instructions",
                &samples[number],
            )?;
            let before = *before.get_or_insert(row.avg);
            let slower = slower_percent(row.avg, before);
            rows.push(row.extra("slower_percent", slower));
        }
    }
    for (name, shares) in checks {
        rows.push(Row::from_samples(&format!("check {name}"), "per cent of a CPU", &shares)?);
    }
    Ok(rows)
}

/// Adds the share of the CPU of each check in a status.
fn shares(status: &[u8], checks: &mut Vec<(String, Vec<f64>)>) -> Result<()> {
    let status: Value = serde_json::from_slice(status)?;
    for check in status["checks"].as_array().context("checks in the status")? {
        let name = check["name"].as_str().context("a name")?;
        let share = check["cpu_percent"].as_f64().context("a share")?;
        match checks.iter_mut().find(|(known, _)| known == name) {
            Some((_, shares)) => shares.push(share),
            None => checks.push((name.to_owned(), vec![share])),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_have_their_own_samples() {
        let scripts = scripts();
        let mut time = 0;
        let mut phase = 0;
        let outputs: Vec<Output> = scripts
            .iter()
            .enumerate()
            .map(|(at, script)| {
                phase += u64::from(at > 1 && PHASES.iter().any(|(_, begin)| begin == script));
                let share = r#"{"checks":[{"name":"x","cpu_percent":0.5}]}"#;
                time = if at < 2 { 9_000_000 } else { phase * 1000 };
                Output { stdout: share.into(), tsc_start: 0, tsc_end: time, ..Output::default() }
            })
            .collect();
        let rows = rows(&scripts, &outputs).unwrap();
        assert_eq!(rows.len(), PHASES.len() * WORKLOADS.len() + 1);
        for (row, want) in rows.iter().zip([1000.0, 2000.0, 3000.0].iter().cycle()) {
            if row.unit == "instructions" {
                assert_eq!((row.n, row.avg), (REPETITIONS as u64, *want), "{}", row.name);
                assert_eq!(row.extra["slower_percent"], (want / 1000.0 - 1.0) * 100.0);
            }
        }
        assert_eq!((rows[6].n, rows[6].median), (REPETITIONS as u64, 0.5));
    }
}
