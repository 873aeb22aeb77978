//! Table `typed`: the speed of compiled programs against native ones, and of the check.

use super::described;
use crate::scenario::{typed, wasi_missing};
use crate::{cache, process, product};
use anyhow::{ensure, Context, Result};
use kyozon_results::Row;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// In each round, both builds of all kernels run once; odd rounds reverse the order.
const ROUNDS: usize = 15;
/// Measurements of the check, each of them the median of many.
const CHECKS: usize = 5;
const LIMIT: Duration = Duration::from_secs(120);
/// Both compilers' version and level.
const CLANG: &str = "clang-14";
const KERNELS: [&str; 12] = [
    "gemm",
    "2mm",
    "syrk",
    "atax",
    "bicg",
    "mvt",
    "trisolv",
    "lu",
    "jacobi-2d",
    "heat-3d",
    "seidel-2d",
    "floyd-warshall",
];

/// What is missing to measure.
pub fn missing() -> Option<String> {
    wasi_missing().map(|needs| needs.trim_start_matches("needs ").to_owned())
}

/// The first number in what `program --version` prints.
fn version_of(program: &str) -> Result<String> {
    let text = process::run_ok(Command::new(program).arg("--version"), Duration::from_secs(20))?;
    let line = text.lines().next().with_context(|| format!("{program} has no version"))?;
    let number = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
    let number = line.split_whitespace().find(number).unwrap_or(line);
    Ok(number.trim_end_matches(')').to_owned())
}

/// A kernel's CPU time in milliseconds, and the line with its sum.
fn run(command: &mut Command, kernel: &str) -> Result<(f64, String)> {
    let output = process::run_ok(command.arg(kernel), LIMIT).with_context(|| kernel.to_owned())?;
    parse(&output).with_context(|| format!("{kernel}: {output:?}"))
}

fn parse(output: &str) -> Result<(f64, String)> {
    let (time, sum) = output.split_once('\n').context("two lines are missing")?;
    let ns: f64 = time.strip_suffix(" ns").context("no time")?.parse()?;
    ensure!(sum.starts_with("sum "), "no sum");
    Ok((ns / 1e6, sum.trim().to_owned()))
}

/// The program for this machine, and as typed code.
fn builds(folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let source = cache::tree()?.join("tests/typed/speed/kernels.c");
    let (native, wasm) = (folder.join("kernels"), folder.join("kernels.wasm"));
    let build = |options: &[&str], to: &Path| {
        let mut clang = Command::new(CLANG);
        process::run_ok(clang.arg("-O2").args(options).arg(&source).arg("-o").arg(to), LIMIT)
    };
    build(&[], &native)?;
    build(&["--target=wasm32-wasi", "-msimd128"], &wasm)?;
    Ok((native, typed::compiled_wasm("kernels", &wasm)?))
}

/// The geometric mean of the ratios of each round.
fn means(ratios: &[Vec<f64>]) -> Vec<f64> {
    let rounds = ratios.first().map_or(0, Vec::len);
    let mean = |round: usize| {
        let logarithms: f64 = ratios.iter().map(|kernel| kernel[round].ln()).sum();
        (logarithms / ratios.len() as f64).exp()
    };
    (0..rounds).map(mean).collect()
}

/// Speeds of the check and of the decoder alone, from the line of the example `speed`.
fn speeds(line: &str) -> Result<(f64, f64)> {
    let after = |word: &str| -> Result<f64> {
        let rest = line.split_once(word).with_context(|| line.to_owned())?.1;
        Ok(rest.split_whitespace().next().with_context(|| line.to_owned())?.parse()?)
    };
    Ok((after("check ")?, after("decode ")?))
}

/// The check of SQLite, whose text has more than a million bytes.
fn checks() -> Result<Vec<(f64, f64)>> {
    let file = cache::folder("typed")?.join("bench-sqlite.typed");
    cache::write(&file, &typed::compiled("sqlite")?)?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["run", "--locked", "--quiet", "--release", "-p", "kyozon-typed-annotate"]);
    cargo.args(["--example", "speed", "--"]).arg(&file).current_dir(cache::tree()?);
    process::run_ok(&mut cargo, 10 * LIMIT)?;
    (0..CHECKS).map(|_| speeds(&process::run_ok(&mut cargo, LIMIT)?)).collect()
}

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    let folder = cache::scratch()?;
    let (native, file) = builds(folder.path())?;
    let mut table = described(results, "typed")?;
    for compiler in [CLANG, "gcc"] {
        table = table.version(compiler, &version_of(compiler)?);
    }
    // What else the machine does then hits all kernels alike.
    let mut times = vec![(Vec::new(), Vec::new()); KERNELS.len()];
    for round in 0..ROUNDS {
        for (kernel, (direct, checked)) in KERNELS.into_iter().zip(&mut times) {
            let natively = || run(&mut Command::new(&native), kernel);
            let as_typed = || {
                let mut command = Command::new(product::file("kyozon")?);
                run(command.args(["typed", "run"]).arg(&file).arg("--"), kernel)
            };
            let (one, other) = if round % 2 == 0 {
                let one = natively()?;
                (one, as_typed()?)
            } else {
                let other = as_typed()?;
                (natively()?, other)
            };
            ensure!(one.1 == other.1, "{kernel}: {} natively, {} as typed code", one.1, other.1);
            direct.push(one.0);
            checked.push(other.0);
        }
    }
    let mut ratios = Vec::new();
    for (kernel, (direct, checked)) in KERNELS.into_iter().zip(&times) {
        for (name, times) in [("native", direct), ("typed", checked)] {
            let row = Row::from_samples(name, "ms", times)?.counting("rounds");
            table = table.row(row.group(kernel));
        }
        table = table.row(Row::ratio("typed : native", checked, direct)?.group(kernel));
        ratios.push(checked.iter().zip(direct).map(|(over, under)| over / under).collect());
    }
    let row = Row::from_samples("typed : native", "ratio", &means(&ratios))?.counting("rounds");
    table = table.row(row.group("geometric mean"));
    let (checks, decodes): (Vec<f64>, Vec<f64>) = checks()?.into_iter().unzip();
    for (name, speeds) in [("check", &checks), ("decode alone", &decodes)] {
        table = table.row(Row::from_samples(name, "MB/s", speeds)?.group("SQLite"));
    }
    table.write(results)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_has_a_time_and_a_sum() {
        assert_eq!(parse("1500000 ns\nsum 2.5\n").unwrap(), (1.5, "sum 2.5".into()));
        for bad in ["", "1 ns\n", "x ns\nsum 1\n", "1\nsum 1\n"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn means_are_geometric() {
        let means = means(&[vec![1.0, 2.0], vec![4.0, 2.0]]);
        assert!((means[0] - 2.0).abs() < 1e-9 && (means[1] - 2.0).abs() < 1e-9);
    }

    #[test]
    fn speeds_are_in_the_line() {
        let line =
            "1317507 bytes of text, 300839 instructions: check 38.0 MB/s, decode 129.5 MB/s\n";
        assert_eq!(speeds(line).unwrap(), (38.0, 129.5));
        assert!(speeds("nothing").is_err());
    }
}
