//! Table `guest`: the cost to Linux of being a guest. The only load is a cokernel with one tick a second.
//!
//! Two runs do the same work: one on the instruction clock, one on this machine's clock, which measures the emulator's
//! CPU time.

use super::overhead::WORKLOADS;
use super::{described, qemu_version, slower_percent};
use crate::guest::Guest;
use crate::kernels::{Kernel, SERIES};
use crate::{batch, product, spec::Spec};
use anyhow::{ensure, Context, Result};
use kyozon_results::Row;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Runs of each workload in each phase.
const ROUNDS: usize = 7;
/// Runs of each workload for one sample of the emulator's time, whose resolution is 10 ms.
const TURNS: [usize; WORKLOADS.len()] = [6, 1];
/// The two phases, which alternate, and the script that begins each.
const PHASES: [(&str, &str); 2] = [
    ("bare", "if kyozon status >/dev/null; then kyozon unload; fi"),
    (
        "guest",
        "kyozon load --isolation vmm --cokernel /usr/lib/kyozon/cokernel-test.bin --hz 1 >/dev/null",
    ),
];
const STATUS: &str = "kyozon status --json";
/// Time limit of a run, in real time.
const LIMIT: Duration = Duration::from_secs(3000);

/// A step of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Begins the phase with this index.
    Begin(usize),
    /// Runs a workload: index of the phase, index of the workload.
    Work(usize, usize),
    Status,
}

impl Step {
    fn script(self) -> &'static str {
        match self {
            Self::Begin(phase) => PHASES[phase].1,
            Self::Work(_, workload) => WORKLOADS[workload].1,
            Self::Status => STATUS,
        }
    }
}

/// The steps of a run. The first round is not counted: a workload's first run differs from later ones, in both phases.
fn steps() -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..=ROUNDS {
        for phase in 0..PHASES.len() {
            steps.push(Step::Begin(phase));
            steps.extend((phase == 1).then_some(Step::Status));
            steps.extend((0..WORKLOADS.len()).map(|workload| Step::Work(phase, workload)));
            steps.extend((phase == 1).then_some(Step::Status));
        }
    }
    steps.push(Step::Begin(0));
    steps
}

/// For each workload, the samples of both phases, without the first round.
type Taken = [[Vec<u64>; PHASES.len()]; WORKLOADS.len()];

fn gather(steps: &[Step], taken: impl Iterator<Item = u64>) -> Taken {
    let mut all = Taken::default();
    for (step, taken) in steps.iter().zip(taken) {
        if let Step::Work(phase, workload) = *step {
            all[workload][phase].push(taken);
        }
    }
    all.iter_mut().flatten().for_each(|taken| {
        taken.remove(0);
    });
    all
}

/// The wall in a status: bytes of nested tables, and number of Linux's exits other than ticks.
fn wall(status: &[u8]) -> Result<(u64, u64)> {
    let status: Value = serde_json::from_slice(status)?;
    let wall = &status["wall"];
    let exits = wall["exits"].as_object().context("exits in the status")?;
    let other = exits.iter().filter(|(reason, _)| *reason != "tick");
    let sum = other.map(|(_, count)| count.as_u64()).sum::<Option<u64>>();
    Ok((wall["nested_bytes"].as_u64().context("nested_bytes")?, sum.context("counts of exits")?))
}

/// The rows of the run on the instruction clock: instructions, exits and memory.
fn rows(steps: &[Step], ticks: &[u64], statuses: &[&[u8]]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for ((workload, _), taken) in WORKLOADS.iter().zip(&gather(steps, ticks.iter().copied())) {
        let mut bare = None;
        for ((phase, _), taken) in PHASES.iter().zip(taken) {
            let row = Row::from_samples(&format!("{workload}, {phase}"), "instructions", taken)?;
            let bare = *bare.get_or_insert(row.median);
            let slower = slower_percent(row.median, bare);
            rows.push(row.extra("slower_percent", slower));
        }
    }
    let walls = statuses.iter().map(|status| wall(status)).collect::<Result<Vec<_>>>()?;
    let exits: Vec<u64> = walls.chunks_exact(2).map(|pair| pair[1].1 - pair[0].1).collect();
    rows.push(Row::from_samples("exits other than ticks, in both workloads", "exits", &exits)?);
    let bytes = |pair: &[(u64, u64)]| pair.iter().map(|(bytes, _)| *bytes as f64).collect();
    let bytes: Vec<Vec<f64>> = walls.chunks_exact(2).map(bytes).collect();
    rows.push(Row::from_rounds("nested tables", "bytes", &bytes)?);
    Ok(rows)
}

/// For each workload, the ratio of the emulator's times, guest to bare, of each round, and that of the smallest times.
fn ratios(steps: &[Step], ms: &[u64]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for ((workload, _), [bare, guest]) in WORKLOADS.iter().zip(&gather(steps, ms.iter().copied())) {
        ensure!(bare.iter().all(|ms| *ms > 0), "{workload}: too short for the clock's 10 ms");
        let ratio = |(bare, guest): (&u64, &u64)| *guest as f64 / *bare as f64;
        let ratios: Vec<f64> = bare.iter().zip(guest).map(ratio).collect();
        let of_smallest = bare.iter().min().zip(guest.iter().min()).map_or(0.0, ratio);
        let name = format!("{workload}, emulator's time, guest : bare");
        let row = Row::from_samples(&name, "ratio", &ratios)?;
        rows.push(row.extra("ratio_of_least", (of_smallest * 1000.0).round() / 1000.0));
    }
    Ok(rows)
}

fn counted(spec: &Spec) -> Result<Vec<Row>> {
    let steps = steps();
    let scripts: Vec<&str> = steps.iter().map(|step| step.script()).collect();
    let run = batch::run(spec, &scripts, LIMIT)?;
    for (script, output) in scripts.iter().zip(&run.outputs) {
        output.expect_success().with_context(|| format!("{script:?}"))?;
    }
    let ticks: Vec<u64> = run.outputs.iter().map(|output| output.ticks()).collect();
    let pairs = steps.iter().zip(&run.outputs).filter(|(step, _)| **step == Step::Status);
    let statuses: Vec<&[u8]> = pairs.map(|(_, output)| &*output.stdout).collect();
    rows(&steps, &ticks, &statuses)
}

fn timed(spec: &Spec) -> Result<Vec<Row>> {
    let steps = steps();
    let mut guest = Guest::boot(spec)?;
    let mut taken = Vec::new();
    for step in &steps {
        let before = guest.emulator_time()?;
        let script = match *step {
            Step::Work(_, workload) => vec![step.script(); TURNS[workload]].join("\n"),
            _ => step.script().into(),
        };
        guest.run(&script)?.expect_success().context(script)?;
        taken.push((guest.emulator_time()? - before).as_millis() as u64);
    }
    guest.shutdown()?;
    ratios(&steps, &taken)
}

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    let mut table = described(results, "guest")?.version("qemu", &qemu_version()?);
    for series in SERIES {
        let kernel = Kernel::fetch(series, "cloud", false)?;
        let spec = product::install(Spec::new(&kernel))?;
        let rows = [counted(&spec)?, timed(&spec)?].concat();
        table.rows.extend(rows.into_iter().map(|row| row.group(series)));
        table = table.version(&format!("linux {series}"), &kernel.version);
    }
    table.write(results)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each step takes: 1000 for work on the bare machine and 1100 in a guest, ten times that in the first round.
    fn taken(steps: &[Step]) -> Vec<u64> {
        let mut seen = Vec::new();
        let mut take = |step: &Step| {
            let Step::Work(phase, _) = step else { return 7 };
            let first = !seen.contains(step);
            seen.push(*step);
            (1000 + 100 * *phase as u64) * if first { 10 } else { 1 }
        };
        steps.iter().map(&mut take).collect()
    }

    #[test]
    fn the_first_round_is_not_counted() {
        let steps = steps();
        let statuses: Vec<String> = (0..2 * (ROUNDS + 1))
            .map(|at| {
                format!(
                    r#"{{"wall":{{"exits":{{"tick":{},"nmi":{at}}},"nested_bytes":4096}}}}"#,
                    at * 5
                )
            })
            .collect();
        let statuses: Vec<&[u8]> = statuses.iter().map(|status| status.as_bytes()).collect();
        let rows = rows(&steps, &taken(&steps), &statuses).unwrap();
        let names: Vec<_> = rows.iter().map(|row| (&*row.name, row.n, row.median)).collect();
        let n = ROUNDS as u64;
        assert_eq!(names[..2], [("CPU-bound, bare", n, 1000.0), ("CPU-bound, guest", n, 1100.0)]);
        assert_eq!((rows[0].extra["slower_percent"], rows[3].extra["slower_percent"]), (0.0, 10.0));
        assert_eq!((rows[4].n, rows[4].worst, rows[4].avg), (n + 1, 1.0, 1.0));
        assert_eq!((rows[5].median, rows[5].unit.as_str()), (4096.0, "bytes"));
    }

    #[test]
    fn emulator_times_are_compared_by_round() {
        let steps = steps();
        let mut ms = taken(&steps);
        let rows = ratios(&steps, &ms).unwrap();
        assert!(rows.iter().all(|row| row.n == ROUNDS as u64 && row.worst == 1.1), "{rows:?}");
        assert!(rows.iter().all(|row| row.extra["ratio_of_least"] == 1.1));
        ms.fill(0);
        assert!(ratios(&steps, &ms).unwrap_err().to_string().contains("too short"));
    }

    #[test]
    fn statuses_without_a_wall_are_errors() {
        assert!(wall(br#"{"wall":null}"#).unwrap_err().to_string().contains("exits"));
        assert!(wall(br#"{"wall":{"exits":{"nmi":"?"},"nested_bytes":1}}"#).is_err());
    }
}
