//! Table `crowd`: how long the check of tasks takes, and until it reports a hidden process, by the number of tasks.

use super::{described, detection, qemu_version};
use crate::kernels::Kernel;
use crate::{batch, cache, module, product, scenario, spec::Spec};
use anyhow::{ensure, Context, Result};
use kyozon_monitor::random::Random;
use kyozon_results::Row;
use std::path::Path;
use std::time::Duration;

const SERIES: &str = "6.12";
const LIMIT: Duration = Duration::from_secs(3600);
/// Megabytes of memory: a thread takes some twenty kilobytes of the kernel's.
const MEMORY: u32 = 6144;
/// About as many tasks as a booted guest has.
const OWN: usize = 50;
/// Rows: their names, how many threads sleep, and how often a process is hidden.
const CROWDS: [(&str, usize, usize); 3] = [
    ("nothing but Linux", 0, 40),
    ("500 tasks", 500 - OWN, 40),
    ("65,000 tasks", 65_000 - OWN, 10),
];

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    let kernel = Kernel::fetch(SERIES, "cloud", false)?;
    let built = module::build(&cache::tree()?.join("linux/attacks"), &kernel)?;
    let (_, crowd) =
        scenario::compile(&cache::tree()?.join("crates/lab/kyozon-lab/src/bench/crowd.c"))?;
    let mut spec = product::install(Spec::new(&kernel))?
        .file("/m/kyozon-attacks.ko", 0o644, std::fs::read(&built.file)?)
        .file("/m/crowd", 0o755, crowd);
    spec.mem = MEMORY;
    let mut table = described(results, "crowd")?
        .version("qemu", &qemu_version()?)
        .version(&format!("linux {SERIES}"), &kernel.version);
    let mut random = Random::new(0);
    for (name, threads, trials) in CROWDS {
        let rests: Vec<_> = (0..trials)
            .map(|_| format!("{:.3}", 1.0 + random.below(1000) as f64 / 1000.0))
            .collect();
        let script =
            format!("threads={threads} rests='{}'\n{}", rests.join(" "), include_str!("crowd.sh"));
        let run = batch::run(&spec, &[&script], LIMIT)?;
        let text = run.outputs[0].expect_success().with_context(|| name.to_owned())?;
        for row in rows(name, &text, trials)? {
            table = table.row(row);
        }
        eprintln!("  {name}");
    }
    table.write(results)?;
    Ok(())
}

/// The rows of a run, from its output.
fn rows(name: &str, text: &str, trials: usize) -> Result<Vec<Row>> {
    let passes: Vec<[f64; 3]> = text.lines().filter_map(pass).collect();
    let found = detection::delays(text, "process.hidden")?;
    ensure!(
        (passes.len(), found.len()) == (trials, trials),
        "{} passes and {} findings of {trials}",
        passes.len(),
        found.len()
    );
    let column =
        |at: usize, per: f64| -> Vec<f64> { passes.iter().map(|pass| pass[at] / per).collect() };
    let tasks = column(2, 1.0).into_iter().fold(0.0, f64::max);
    let row = |group: &str, samples: &[f64]| -> Result<Row> {
        let row = Row::from_samples(name, "ms", samples)?.distribution(samples)?;
        Ok(row.group(group).extra("tasks", tasks))
    };
    Ok(vec![
        row("a pass", &column(0, 1e6))?,
        row("CPU time of a pass", &column(1, 1e6))?,
        row("until a hidden process is reported", &found)?,
    ])
}

/// Nanoseconds, nanoseconds of CPU time and number of tasks of a line `pass: ...`.
fn pass(line: &str) -> Option<[f64; 3]> {
    let (wall, rest) = line.strip_prefix("pass: ")?.split_once(" ns, ")?;
    let (cpu, tasks) = rest.strip_suffix(" tasks")?.split_once(" ns of CPU time, ")?;
    Some([wall.parse().ok()?, cpu.parse().ok()?, tasks.parse().ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_passes_and_delays() {
        let trial = |at: u64| {
            format!(
                "pass: 2000000 ns, 1000000 ns of CPU time, 53 tasks
kyozon-attacks: hide-list done: sleep (1) at tsc {}
{{\"kind\":\"finding\",\"class\":\"process.hidden\",\"tsc\":{}}}
",
                at * 1_000_000,
                at * 1_000_000 + 5_000_000
            )
        };
        let text = trial(100) + &trial(200);
        let rows = rows("53", &text, 2).unwrap();
        let medians: Vec<f64> = rows.iter().map(|row| row.median).collect();
        assert_eq!((medians, rows[0].extra["tasks"]), (vec![2.0, 1.0, 5.0], 53.0));
        for bad in ["", &trial(1)] {
            assert!(super::rows("53", bad, 2).is_err());
        }
    }
}
