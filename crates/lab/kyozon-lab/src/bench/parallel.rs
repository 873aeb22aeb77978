//! Table `parallel`: computations with one and with two threads of execution, as virtual machines and as threads of the
//! same source.

use super::{described, kyozon};
use crate::{cache, process, product};
use anyhow::{ensure, Context, Result};
use kyozon_results::Row;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

const ROUNDS: usize = 61;
const LIMIT: Duration = Duration::from_secs(120);
/// Example, its input in words, its argument.
const WORK: [(&str, &str, &str); 3] = [
    ("sort", "2000000 numbers", "2000000"),
    ("sort", "20000000 numbers", "20000000"),
    ("matmul", "700 x 700", "700"),
];
const VARIANTS: [&str; 2] = ["vm", "threads"];
const COUNTS: [usize; 2] = [1, 2];

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    let host = host_programs()?;
    let mut table = described(results, "parallel")?;
    for (example, work, number) in WORK {
        let mut taken: [[Vec<f64>; COUNTS.len()]; VARIANTS.len()] = Default::default();
        for round in 0..ROUNDS {
            for at in 0..4 {
                // The order rotates, so that no variant always comes first.
                let at = (at + round) % 4;
                let (way, count) = (at / 2, at % 2);
                let mut command = match VARIANTS[way] {
                    "vm" => {
                        let mut command = kyozon()?;
                        let image = product::file(&format!("{example}.elf"))?;
                        command.args(["run", "--backend", "kvm", "--memory", "256M"]);
                        command.arg(image).arg("--");
                        command
                    }
                    _ => Command::new(host.join(example)),
                };
                command.args([&COUNTS[count].to_string(), number, "time"]);
                taken[way][count].push(time(&process::run_ok(&mut command, LIMIT)?)?);
            }
        }
        let group = format!("{example}, {work}");
        for (way, name) in VARIANTS.iter().enumerate() {
            for (count, threads) in COUNTS.iter().enumerate() {
                let name = format!("{threads} x {name}");
                table =
                    table.row(Row::from_samples(&name, "us", &taken[way][count])?.group(&group));
            }
        }
        let [vm, threads] = &taken;
        for (name, of, to) in [
            ("1 x vm : 1 x threads", &vm[0], &threads[0]),
            ("2 x vm : 2 x threads", &vm[1], &threads[1]),
            ("speed-up, vm", &vm[0], &vm[1]),
            ("speed-up, threads", &threads[0], &threads[1]),
        ] {
            table = table.row(Row::ratio(name, of, to)?.group(&group));
        }
    }
    table.write(results)?;
    Ok(())
}

/// The time in the last line, `time N us`, of a program's output.
fn time(output: &str) -> Result<f64> {
    let last = output.lines().last().unwrap_or_default();
    let number = last.strip_prefix("time ").and_then(|rest| rest.strip_suffix(" us"));
    number
        .and_then(|number| number.parse().ok())
        .with_context(|| format!("the last line is {last:?}, not time N us"))
}

/// The folder of the examples as host programs with threads, built with the flags of the images.
fn host_programs() -> Result<PathBuf> {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut build = Command::new(cargo);
    build.current_dir(cache::tree()?).env("RUSTFLAGS", "-Cforce-frame-pointers=yes");
    build.args([
        "build",
        "--locked",
        "--quiet",
        "--release",
        "--target",
        "x86_64-unknown-linux-gnu",
    ]);
    build.args(["-p", "kyozon-unikernel-examples", "--bins"]);
    process::run_ok(&mut build, Duration::from_secs(600))?;
    let target = env::var_os("CARGO_TARGET_DIR")
        .context("CARGO_TARGET_DIR is not set: run through make, or read the cache's env")?;
    let folder = PathBuf::from(target).join("x86_64-unknown-linux-gnu/release");
    ensure!(fs::metadata(folder.join("sort")).is_ok(), "{}: no programs", folder.display());
    Ok(folder)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_last_line_has_the_time() {
        assert_eq!(super::time("sorted\ntime 250 us\n").unwrap(), 250.0);
        assert!(super::time("time 250\n").is_err() && super::time("").is_err());
    }
}
