//! The programs of table `typed`, the ways to run them, and what each way took.

use crate::scenario::typed;
use crate::{cache, process, product};
use anyhow::{ensure, Context, Result};
use kyozon_results::Row;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Time limits of one run, and of a build with its download.
const LIMIT: Duration = Duration::from_secs(120);
const BUILD: Duration = Duration::from_secs(1800);
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
const LIBRARIES: [&str; 8] = ["sqlite", "bzip2", "lz4", "zlib", "xz", "lua", "libb2", "libsodium"];
/// The name of the way that the others are compared with.
const NATIVE: &str = "native";

/// What a program of `tests/typed/speed` computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Kernel,
    Library,
}

/// A way to run a program.
struct Way {
    name: &'static str,
    words: Vec<OsString>,
    /// Whether the program learns its CPU time. Otherwise the time is that of the process, less that of one that ends
    /// where the work would begin.
    tells_time: bool,
}

/// A program of `tests/typed/speed`, built in all ways.
pub struct Program {
    pub name: &'static str,
    /// What it was compiled to.
    pub typed: PathBuf,
    ways: Vec<Way>,
    /// The library's version; empty without one.
    pub version: String,
}

/// Some work of a program, and the milliseconds that it took in each round, by each way.
pub struct Work {
    pub name: &'static str,
    pub kind: Kind,
    program: usize,
    times: Vec<Vec<f64>>,
}

impl Program {
    /// Builds a program; what only this run needs goes to `scratch`.
    fn build(name: &'static str, scratch: &Path) -> Result<Self> {
        let mut script = Command::new(cache::tree()?.join("scripts/speed.sh"));
        let folder = process::run_ok(script.arg(name), BUILD)?;
        let folder = Path::new(folder.trim());
        let wasm = folder.join(format!("{name}.wasm"));
        let way = |name, words: &[&Path]| {
            let words = words.iter().map(|word| word.into()).collect();
            Way { name, words, tells_time: true }
        };
        let kyozon = product::file("kyozon")?;
        let typed_way = |name, file: &Path| {
            way(name, &[&kyozon, Path::new("typed"), Path::new("run"), file, Path::new("--")])
        };
        let by_cranelift = scratch.join(name).with_extension("typed");
        let mut compile = super::cargo_run()?;
        compile.args(["-p", "kyozon-typed-compiler", "--features", "cranelift"]);
        compile.args(["--example", "cranelift", "--"]).arg(&wasm).arg(&by_cranelift);
        process::run_ok(&mut compile, BUILD)?;
        let typed = typed::compiled_wasm(name, &wasm)?;
        let mut ways = vec![
            way(NATIVE, &[&folder.join(name)]),
            typed_way("typed", &typed),
            typed_way("typed, Cranelift", &by_cranelift),
        ];
        if let Some(wasmtime) = wasmtime()? {
            let code = scratch.join(name).with_extension("cwasm");
            let mut compile = Command::new(&wasmtime);
            compile.arg("compile").arg(&wasm).arg("-o").arg(&code);
            process::run_ok(&mut compile, LIMIT)?;
            let words = [&wasmtime, Path::new("run"), Path::new("--allow-precompiled"), &code];
            ways.push(Way { tells_time: false, ..way("wasmtime", &words) });
        }
        let wasm2c = folder.join(format!("{name}-wasm2c"));
        if wasm2c.exists() {
            ways.push(way("wasm2c", &[&wasm2c]));
        }
        let version = folder.join("version");
        let version =
            fs::read_to_string(&version).with_context(|| version.display().to_string())?;
        Ok(Self { name, typed, ways, version: version.trim().to_owned() })
    }

    /// What `kyozon typed check` says of it.
    pub fn check(&self) -> Result<String> {
        let mut check = Command::new(product::file("kyozon")?);
        process::run_ok(check.args(["typed", "check"]).arg(&self.typed), LIMIT)
    }
}

/// The program wasmtime, if `make wasmtime` has built it.
pub fn wasmtime() -> Result<Option<PathBuf>> {
    let program = cache::root()?.join("tools/bin/wasmtime");
    Ok(program.exists().then_some(program))
}

impl Way {
    /// What the work prints, and the milliseconds of CPU time of the whole process.
    fn run(&self, arguments: &[&str]) -> Result<(String, f64)> {
        let mut command = Command::new(&self.words[0]);
        let before = process::children_time()?;
        let output = process::run_ok(command.args(&self.words[1..]).args(arguments), LIMIT)
            .with_context(|| format!("{}, {arguments:?}", self.name))?;
        Ok((output, (process::children_time()? - before).as_secs_f64() * 1000.0))
    }

    /// The milliseconds of CPU time that the work took, and the line with its sum.
    fn work(&self, name: &str) -> Result<(f64, String)> {
        let (output, all) = self.run(&[name])?;
        let (told, sum) = parse(&output).with_context(|| format!("{}: {output:?}", self.name))?;
        let time = match told {
            Some(time) => time,
            None => all - self.run(&[name, "start"])?.1,
        };
        ensure!(told.is_some() == self.tells_time, "{}: a clock, or none", self.name);
        Ok((time, sum))
    }
}

/// All programs, and all work.
pub fn all(scratch: &Path) -> Result<(Vec<Program>, Vec<Work>)> {
    let mut programs = Vec::new();
    for name in LIBRARIES.into_iter().chain(["kernels"]) {
        programs.push(Program::build(name, scratch)?);
    }
    let work = |name, kind, program: usize| {
        let times = vec![Vec::new(); programs[program].ways.len()];
        Work { name, kind, program, times }
    };
    let libraries = LIBRARIES.into_iter().enumerate();
    let mut all: Vec<Work> = libraries.map(|(n, name)| work(name, Kind::Library, n)).collect();
    all.extend(KERNELS.into_iter().map(|name| work(name, Kind::Kernel, LIBRARIES.len())));
    Ok((programs, all))
}

impl Work {
    /// Runs the work once in each way. The first way differs from round to round. All must compute the same.
    pub fn round(&mut self, programs: &[Program], round: usize) -> Result<()> {
        let ways = &programs[self.program].ways;
        let mut sums = Vec::new();
        for n in 0..ways.len() {
            let way = (n + round) % ways.len();
            let (time, sum) = ways[way].work(self.name)?;
            self.times[way].push(time);
            sums.push((ways[way].name, sum));
        }
        let equal = sums.windows(2).all(|pair| pair[0].1 == pair[1].1);
        ensure!(equal, "{}: the results differ: {sums:?}", self.name);
        Ok(())
    }

    /// The rows of the work: the times of each way, and their ratios to those of the native one.
    pub fn rows(&self, programs: &[Program]) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let ways = || programs[self.program].ways.iter().zip(&self.times);
        for (way, times) in ways() {
            rows.push(Row::from_samples(way.name, "ms", times)?.counting("rounds"));
        }
        for (way, times) in ways().skip(1) {
            rows.push(Row::ratio(&ratio_name(way.name), times, &self.times[0])?);
        }
        Ok(rows.into_iter().map(|row| row.group(self.name)).collect())
    }

    /// The ratios of a way to the native one, if it was measured.
    fn ratios(&self, programs: &[Program], way: &str) -> Option<Vec<f64>> {
        let ways = &programs[self.program].ways;
        let way = ways.iter().position(|other| other.name == way)?;
        Some(self.times[way].iter().zip(&self.times[0]).map(|(over, under)| over / under).collect())
    }
}

fn ratio_name(way: &str) -> String {
    format!("{way} : {NATIVE}")
}

/// Rows of geometric means: of each way, for all work, and for each kind.
pub fn means(programs: &[Program], all: &[Work]) -> Result<Vec<Row>> {
    let kinds = [
        (None, "geometric mean"),
        (Some(Kind::Library), "geometric mean, libraries"),
        (Some(Kind::Kernel), "geometric mean, kernels"),
    ];
    let mut rows = Vec::new();
    for (kind, group) in kinds {
        for way in programs[0].ways.iter().skip(1).map(|way| way.name) {
            let of_kind = all.iter().filter(|work| kind.is_none_or(|kind| work.kind == kind));
            let ratios: Option<Vec<_>> = of_kind.map(|work| work.ratios(programs, way)).collect();
            let ratios = ratios.with_context(|| format!("{way} was not measured everywhere"))?;
            let row = Row::from_samples(&ratio_name(way), "ratio", &by_rounds(&ratios))?;
            rows.push(row.counting("rounds").group(group));
        }
    }
    Ok(rows)
}

/// The geometric mean of the ratios of each round.
fn by_rounds(ratios: &[Vec<f64>]) -> Vec<f64> {
    let rounds = ratios.first().map_or(0, Vec::len);
    let mean = |round: usize| {
        let logarithms: f64 = ratios.iter().map(|work| work[round].ln()).sum();
        (logarithms / ratios.len() as f64).exp()
    };
    (0..rounds).map(mean).collect()
}

/// The milliseconds, if the program knows them, and the line with the sum.
fn parse(output: &str) -> Result<(Option<f64>, String)> {
    let (time, sum) = output.split_once('\n').context("two lines are missing")?;
    ensure!(sum.starts_with("sum "), "no sum");
    let sum = sum.trim().to_owned();
    if time == "no clock" {
        return Ok((None, sum));
    }
    let ns: f64 = time.strip_suffix(" ns").context("no time")?.parse()?;
    Ok((Some(ns / 1e6), sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_has_a_time_and_a_sum() {
        assert_eq!(parse("1500000 ns\nsum 2.5\n").unwrap(), (Some(1.5), "sum 2.5".into()));
        assert_eq!(parse("no clock\nsum 2.5\n").unwrap(), (None, "sum 2.5".into()));
        for bad in ["", "1 ns\n", "x ns\nsum 1\n", "1\nsum 1\n", "no clock\n1\n"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_way_without_a_clock_is_measured_from_outside() {
        let script =
            r#"[ "$2" ] || for n in $(seq 500000); do :; done; printf 'no clock\nsum 1\n'"#;
        let words = ["sh", "-c", script, "sh"].map(OsString::from).to_vec();
        let mut way = Way { name: "sh", words, tells_time: false };
        let (time, sum) = way.work("x").unwrap();
        assert!(time > 0.0 && sum == "sum 1", "{time} {sum}");
        way.tells_time = true;
        assert!(way.work("x").is_err());
    }

    #[test]
    fn means_are_geometric() {
        let means = by_rounds(&[vec![1.0, 2.0], vec![4.0, 2.0]]);
        assert!((means[0] - 2.0).abs() < 1e-9 && (means[1] - 2.0).abs() < 1e-9);
    }
}
