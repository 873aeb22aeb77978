//! Table `typed`: the speed of compiled programs against native ones, and of the check.

mod work;

use super::described;
use crate::scenario::wasi_missing;
use crate::suite::cargo;
use crate::{cache, process};
use anyhow::{Context, Result};
use kyozon_results::Row;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// In each round, every work runs once in each way.
const ROUNDS: usize = 9;
/// Measurements of the check, each of them the median of many.
const CHECKS: usize = 5;
const LIMIT: Duration = Duration::from_secs(120);

/// What is missing to measure.
pub fn missing() -> Option<String> {
    wasi_missing().map(|needs| needs.trim_start_matches("needs ").to_owned())
}

/// The first line of what `program --version` prints, without its name.
fn version_of(program: &Path) -> Result<String> {
    let text = process::run_ok(Command::new(program).arg("--version"), Duration::from_secs(20))?;
    let line = text.lines().next().context("no version")?;
    let number = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
    let number = line.split_whitespace().find(number).unwrap_or(line);
    Ok(number.trim_end_matches(')').to_owned())
}

/// Speeds of the check and of the decoder alone, from the line of the example `speed`.
fn speeds(line: &str) -> Result<(f64, f64)> {
    let after = |word: &str| -> Result<f64> {
        let rest = line.split_once(word).with_context(|| line.to_owned())?.1;
        Ok(rest.split_whitespace().next().with_context(|| line.to_owned())?.parse()?)
    };
    Ok((after("check ")?, after("decode ")?))
}

/// The annotations' share of the text, from what `kyozon typed check` prints: percent.
fn annotations(line: &str) -> Result<f64> {
    let before = |word: &str| -> Result<f64> {
        let head = line.split_once(word).with_context(|| line.to_owned())?.0;
        Ok(head.split_whitespace().next_back().with_context(|| line.to_owned())?.parse()?)
    };
    Ok(100.0 * before(" of annotations")? / before(" bytes of text")?)
}

/// Builds and runs what further arguments name.
fn cargo_run() -> Result<Command> {
    let mut command = cargo(&cache::tree()?);
    command.args(["run", "--locked", "--quiet", "--release"]);
    Ok(command)
}

/// The check of a program.
fn checks(file: &Path) -> Result<Vec<(f64, f64)>> {
    let mut cargo = cargo_run()?;
    cargo.args(["-p", "kyozon-typed-annotate", "--example", "speed", "--"]).arg(file);
    process::run_ok(&mut cargo, 10 * LIMIT)?;
    (0..CHECKS).map(|_| speeds(&process::run_ok(&mut cargo, LIMIT)?)).collect()
}

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    let scratch = cache::scratch()?;
    let (programs, mut all) = work::all(scratch.path())?;
    let mut table = described(results, "typed")?;
    for compiler in ["clang-14", "gcc"] {
        table = table.version(compiler, &version_of(compiler.as_ref())?);
    }
    let wasm2c = Some(PathBuf::from("wasm2c")).filter(|program| version_of(program).is_ok());
    let peers = [
        ("wasmtime", work::wasmtime()?, "make wasmtime"),
        ("wasm2c", wasm2c, "apt-get install wabt"),
    ];
    for (name, program, by) in peers {
        match program {
            Some(program) => table = table.version(name, &version_of(&program)?),
            None => eprintln!("not measuring {name} beside typed code: {by}"),
        }
    }
    for program in programs.iter().filter(|program| !program.version.is_empty()) {
        table = table.version(program.name, &program.version);
    }
    // What else the machine does then hits all work alike.
    for round in 0..ROUNDS {
        for work in &mut all {
            work.round(&programs, round)?;
        }
    }
    for work in &all {
        table = work.rows(&programs)?.into_iter().fold(table, |table, row| table.row(row));
    }
    table = work::means(&programs, &all)?.into_iter().fold(table, |table, row| table.row(row));
    for program in &programs {
        let share = [annotations(&program.check()?)?];
        table =
            table.row(Row::from_samples("annotations", "% of text", &share)?.group(program.name));
    }
    // Its text has more than a million bytes.
    let largest = programs.iter().find(|program| program.name == "sqlite").context("no SQLite")?;
    let (checks, decodes): (Vec<f64>, Vec<f64>) = checks(&largest.typed)?.into_iter().unzip();
    for (name, speeds) in [("check", &checks), ("decode alone", &decodes)] {
        table = table.row(Row::from_samples(name, "MB/s", speeds)?.group(largest.name));
    }
    table.write(results)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_in_the_lines() {
        let line =
            "1317507 bytes of text, 300839 instructions: check 38.0 MB/s, decode 129.5 MB/s\n";
        assert_eq!(speeds(line).unwrap(), (38.0, 129.5));
        assert!(speeds("nothing").is_err());
        let line = "accepted: 77 functions, 2000 bytes of text, 100 of annotations; 2 may fault";
        assert!((annotations(line).unwrap() - 5.0).abs() < 1e-9);
        assert!(annotations("nothing").is_err());
    }
}
