//! Table `ipc`: the cost of the microkernel's calls, in instructions, with and without Linux beside it.

use super::alone::{self, HPET};
use super::costs::Costs;
use super::trip::{kinds, plugin_arguments, Trip, ALONE};
use super::{described, qemu_version};
use crate::kernels::{Kernel, SERIES};
use crate::{batch, cache, product, spec::Spec};
use anyhow::{ensure, Context, Result};
use kyozon_results::{parse_histogram, Row, Table};
use std::path::Path;
use std::time::Duration;

/// Samples of a row; the row of ticks has a tenth of them.
const SAMPLES: usize = 2000;
const TICK_HZ: u32 = 1000;
/// Number of the test task's script.
const SCRIPT: usize = 5;
/// Ticks until every sample is taken and printed.
const TICKS: usize = 1000;
const LIMIT: Duration = Duration::from_secs(600);

/// The test task's name, the row's name, and the number of samples.
const ROWS: [(&str, &str, usize); 3] = [
    ("nothing", "null system call", SAMPLES),
    ("call", "IPC round trip", SAMPLES),
    ("tick", "tick to user task", SAMPLES / 10),
];

/// The tasks' output beside `kernel`.
fn beside_linux(kernel: &Kernel) -> Result<String> {
    let spec = product::install(Spec::new(kernel))?;
    let spec = Spec { devices: HPET.map(String::from).into(), ..spec };
    let script = format!(
        "kyozon load --task /usr/lib/kyozon/task-test.bin --task /usr/lib/kyozon/task-test.bin --hz {TICK_HZ} \
         --budget 10000 --serial 0x3e8 --parameter {parameter} >/dev/null || exit 1
         sleep {seconds}
         kyozon unload",
        parameter = SAMPLES << 8 | SCRIPT,
        seconds = TICKS / TICK_HZ as usize + 1,
    );
    let run = batch::run(&spec, &[&script], LIMIT)?;
    run.outputs[0].expect_success()?;
    Ok(run.cokernel)
}

/// The tasks' output without Linux.
fn without_linux(extra: &[String]) -> Result<String> {
    const PAGE: usize = 4096;
    let mut image = std::fs::read(product::file("cokernel.bin")?)?;
    let task = std::fs::read(product::file("task-test.bin")?)?;
    for _ in 0..2 {
        image.resize(image.len().next_multiple_of(PAGE), 0);
        image.extend(&task);
    }
    let parameter = SAMPLES << 8 | SCRIPT;
    let append = format!("hz={TICK_HZ} budget=10000 parameter={parameter} ticks={TICKS}");
    alone::run(&image, &append, extra, LIMIT)
}

/// Instructions and events of the system call that does nothing, from the software interrupt to the task's next
/// instruction: the cheapest of those that were made [`SAMPLES`] times.
fn null_call() -> Result<Trip> {
    let folder = cache::scratch()?;
    let out = folder.path().join("calls");
    let mut plugin = plugin_arguments(ALONE, &out)?;
    plugin[1] += ",calls=1";
    without_linux(&plugin)?;
    let calls = kinds(&std::fs::read_to_string(out)?)?;
    let often = calls.into_iter().filter(|call| call.count >= SAMPLES / 2);
    often.min_by_key(|call| call.sum(&["call"]).instructions).context("no call was made often")
}

/// The `wanted` samples of the histogram `name`, from the lines that a test task printed without a failed call.
fn samples(text: &str, name: &str, wanted: usize) -> Result<Vec<u64>> {
    let all = parse_histogram(text, &format!("test bench {name}"))?;
    ensure!(all.len() == wanted, "{} samples of {name}, not {wanted}: {text}", all.len());
    ensure!(
        text.contains("test bench: done") && text.contains(" failed 0"),
        "calls failed: {text}"
    );
    Ok(all)
}

fn add(mut table: Table, group: &str, text: &str) -> Result<Table> {
    for (name, row, wanted) in ROWS {
        let samples = samples(text, name, wanted)?;
        table = table.row(Row::from_samples(row, "instructions", &samples)?.group(group));
    }
    Ok(table)
}

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    let mut table = described(results, "ipc")?.version("qemu", &qemu_version()?);
    table = add(table, "alone", &without_linux(&[])?)?;
    let costs = Costs::read(results)?;
    let call = null_call()?.sum(&["call"]);
    for (cpu, order) in costs.cpus() {
        let cycles = costs.model(cpu, call.instructions, &call.events)?;
        let name = format!("null system call, {cpu} ({order})");
        table = table.row(Row::from_samples(&name, "modelled cycles", &[cycles])?.group("alone"));
    }
    for series in SERIES {
        let kernel = Kernel::fetch(series, "cloud", false)?;
        let text = beside_linux(&kernel).with_context(|| format!("beside Linux {series}"))?;
        table = add(table, &format!("none {series}"), &text)?;
        table = table.version(&format!("linux {series}"), &kernel.version);
    }
    table.write(results)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_become_samples() {
        let text = "test bench call: 450x2\r\n[1] test bench call: 7x1\ntest bench tick: 1x9\n\
                    test bench: done 3 failed 0\n";
        assert_eq!(samples(text, "call", 3).unwrap(), [450, 450, 7]);
        assert!(samples(text, "call", 4).is_err());
        assert!(samples(&text.replace("failed 0", "failed 1"), "call", 3).is_err());
        assert!(samples("test bench call: x\n", "call", 0).is_err());
    }
}
