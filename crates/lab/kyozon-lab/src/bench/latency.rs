//! Table `latency`: from the timer's scheduled expiry to the cokernel's tick handler, in instructions.
//!
//! Under `-icount` the time-stamp counter counts instructions, and the timer expires at an instant of the same clock.
//! One count of the HPET is 10 instructions, so T0 is exact to 10 instructions.

use super::cokernel::{guest, workload, LIMIT, LINUXES, MODES};
use super::{alone, described, qemu_version};
use crate::kernels::Kernel;
use crate::{batch, product};
use anyhow::{ensure, Context, Result};
use kyozon_results::{parse_histogram, Row};
use std::path::Path;

/// Samples of a row, as in Oikawa's paper.
const SAMPLES: usize = 10_000;
const TICK_HZ: u32 = 2000;
/// Number of the test cokernel's script `Latency`.
const SCRIPT: usize = 11;
/// Maximum ticks that the cokernel needs to print its samples on the serial line.
const PRINTING: usize = 12_000;

/// The samples of one boot of `kernel` with the words `append`.
fn beside_linux(kernel: &Kernel, append: &str, isolation: &str) -> Result<Samples> {
    let load = format!(
        "--isolation {isolation} --hz {TICK_HZ} --budget 10000 --serial 0x3e8 --parameter {}",
        SAMPLES << 8 | SCRIPT
    );
    let script = workload(&load, SAMPLES, SAMPLES + PRINTING);
    let run = batch::run(&guest(kernel, append)?, &[&script], LIMIT)?;
    run.outputs[0].expect_success()?;
    Samples::parse(&run.cokernel)
        .with_context(|| format!("the cokernel beside Linux {}", kernel.release))
}

/// The samples of the same cokernel without Linux, booted by PVH.
fn without_linux() -> Result<Samples> {
    let parameter = SAMPLES << 8 | SCRIPT;
    let ticks = SAMPLES + PRINTING;
    let image = std::fs::read(product::file("cokernel-test.bin")?)?;
    let append = format!("hz={TICK_HZ} budget=10000 parameter={parameter} ticks={ticks}");
    let output = alone::run(&image, &append, &[], LIMIT)?;
    Samples::parse(&output).context("the cokernel alone")
}

/// The samples of one run, instructions.
#[derive(Debug, PartialEq)]
struct Samples {
    entry: Vec<u64>,
    path: Vec<u64>,
    late: Vec<u64>,
}

impl Samples {
    /// The cokernel's three histograms, from its serial line.
    fn parse(text: &str) -> Result<Self> {
        let samples = |name: &str| -> Result<Vec<u64>> {
            let all = parse_histogram(text, &format!("test latency {name}"))?;
            ensure!(all.len() == SAMPLES, "{} samples of {name}, not {SAMPLES}", all.len());
            Ok(all)
        };
        Ok(Self { entry: samples("entry")?, path: samples("path")?, late: samples("late")? })
    }
}

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    let mut table = described(results, "latency")?.version("qemu", &qemu_version()?);
    let reference = without_linux()?;
    let alone = Row::from_samples("alone", "instructions", &reference.late)?;
    table = table.row(alone.distribution(&reference.late)?);
    for (series, append, group) in LINUXES {
        let kernel = Kernel::fetch(series, "cloud", false)?;
        table = table.version(&format!("linux {series}"), &kernel.version);
        for mode in MODES {
            let Samples { entry, path, late } =
                beside_linux(&kernel, append, mode).with_context(|| format!("isolation {mode}"))?;
            for (part, all) in [("", late), (" entry", entry), (" path", path)] {
                let name = format!("{mode}{part} {series}");
                let row = Row::from_samples(&name, "instructions", &all)?.group(group);
                table = table.row(row.distribution(&all)?);
            }
        }
    }
    table.write(results)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_become_samples() {
        let text = format!(
            "[1] test latency entry: 100x{0} 7x1\r\n[2] test latency path: 5x{SAMPLES}\nnoise\ntest latency late: 1x1\ntest latency late: 2x{0}\n",
            SAMPLES - 1
        );
        let samples = Samples::parse(&text).unwrap();
        assert_eq!((samples.entry[0], samples.entry[SAMPLES - 1], samples.late[1]), (100, 7, 2));
        assert!(Samples::parse("test latency entry: 1x1\n")
            .unwrap_err()
            .to_string()
            .contains("1 samples of entry"));
    }
}
