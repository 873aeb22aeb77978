//! `kyozon bench shm`: the experiments of `kyozon-shm` in virtual machines, in confined processes and on threads. They
//! alternate, so that other load on the machine affects all of them.

use anyhow::{bail, ensure, Context, Result};
use kyozon_results::{parse_samples, Row, RowSet, Stats};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Default number of rounds.
pub const ROUNDS: u16 = 61;

/// The two sides of an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sides {
    /// Two virtual machines.
    Machines,
    /// Two virtual machines with a network.
    Network,
    /// Two guests in processes.
    Processes,
    /// Two threads of one process.
    Threads,
}

/// One experiment, and the row that it gives.
#[derive(Clone, Copy, Debug)]
struct Experiment {
    group: Option<&'static str>,
    name: &'static str,
    sides: Sides,
    /// Name of the experiment in `kyozon-shm`.
    kind: &'static str,
    /// Samples per round.
    samples: u32,
    /// The experiment's argument, usually a size in bytes.
    argument: u32,
}

const fn exchange(
    name: &'static str,
    sides: Sides,
    kind: &'static str,
    samples: u32,
) -> Experiment {
    Experiment { group: None, name, sides, kind, samples, argument: 0 }
}

/// The paper's exchange of 8192 integers, on all sides.
const EXCHANGES: [Experiment; 7] = [
    exchange("vm", Sides::Machines, "exchange", 200),
    exchange("threads", Sides::Threads, "exchange", 200),
    exchange("vm-message", Sides::Network, "frames", 30),
    exchange("process", Sides::Processes, "exchange", 200),
    exchange("tcp", Sides::Threads, "tcp", 30),
    exchange("unix", Sides::Threads, "unix", 30),
    exchange("pipe", Sides::Threads, "pipe", 30),
];

/// Group, kind, samples per round, argument. Each runs on machines and on threads.
const FURTHER: [(&str, &str, u32, u32); 16] = [
    ("line there and back", "line", 10, 0),
    ("wake-up, awake", "wake", 100, 5),
    ("wake-up, asleep", "wake", 10, 2000),
    ("thread start", "spawn", 10, 0),
    ("ring, 64 B", "ring", 3, 64),
    ("ring, 1 KiB", "ring", 5, 1 << 10),
    ("ring, 4 KiB", "ring", 5, 4 << 10),
    ("ring, 64 KiB", "ring", 5, 64 << 10),
    ("ring, 1 MiB", "ring", 5, 1 << 20),
    ("in place, 4 KiB", "place", 5, 4 << 10),
    ("in place, 64 KiB", "place", 5, 64 << 10),
    ("in place, 1 MiB", "place", 5, 1 << 20),
    ("copy across, 64 KiB", "across", 5, 64 << 10),
    ("copy across, 1 MiB", "across", 5, 1 << 20),
    ("one copy, 64 KiB", "copy", 5, 64 << 10),
    ("one copy, 1 MiB", "copy", 5, 1 << 20),
];

fn further() -> Vec<Experiment> {
    let both = |(group, kind, samples, argument)| {
        [("vm", Sides::Machines), ("threads", Sides::Threads)].map(|(name, sides)| Experiment {
            group: Some(group),
            name,
            sides,
            kind,
            samples,
            argument,
        })
    };
    FURTHER.into_iter().flat_map(both).collect()
}

/// Samples of each round, nanoseconds.
type Rounds = Vec<Vec<u64>>;

/// Runs all experiments `rounds` times; `progress` gets the number of each round before it starts.
///
/// # Errors
///
/// The image is missing, an experiment failed, or the machine has no `/dev/kvm` or only one CPU.
pub fn shm(image: &Path, rounds: u16, mut progress: impl FnMut(u16)) -> Result<RowSet> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    ensure!(
        image.is_file(),
        "{} not found: run make install, or set KYOZON_IMAGES to the folder of images",
        image.display()
    );
    let cpus = kyozon_tender::pins::allowed();
    ensure!(
        cpus.len() >= 2,
        "two CPUs are needed, but this command may use only {}: see taskset",
        cpus.len()
    );
    let pin = format!("{},{}", cpus[0], cpus[1]);
    let experiments: Vec<Experiment> = EXCHANGES.into_iter().chain(further()).collect();
    let mut taken = vec![Rounds::new(); experiments.len()];
    for round in 0..rounds {
        progress(round);
        // The order rotates, so that no experiment is always first or always follows the same one.
        for i in (0..experiments.len()).map(|i| (i + usize::from(round) * 5) % experiments.len()) {
            taken[i].push(measure(&program, image, &pin, &experiments[i])?);
        }
    }
    figures(&experiments, &taken)
}

/// The arguments of this program that run an experiment.
fn arguments(experiment: &Experiment, image: &Path, pin: &str) -> Vec<String> {
    let image = image.display().to_string();
    let run: &[&str] = match experiment.sides {
        Sides::Threads => &["bench-part"],
        Sides::Machines => &["--backend", "kvm"],
        Sides::Processes => &["--backend", "process"],
        Sides::Network => &["--backend", "kvm", "--vms", "2", "--net", "name=lan,mtu=65520"],
    };
    let guests = ["run", "--time-limit", "60", "--pin", pin];
    let (before, after) = match experiment.sides {
        Sides::Threads => (&[][..], &[][..]),
        _ => (&guests[..], &[image.as_str(), "--"][..]),
    };
    let own = [
        experiment.kind.to_owned(),
        experiment.samples.to_string(),
        experiment.argument.to_string(),
    ];
    let words = before.iter().chain(run).chain(after);
    words.map(|word| (*word).to_owned()).chain(own).collect()
}

/// One round of one experiment.
fn measure(program: &Path, image: &Path, pin: &str, experiment: &Experiment) -> Result<Vec<u64>> {
    let mut command = Command::new(program);
    command.args(arguments(experiment, image, pin)).stdin(Stdio::null());
    let done = command.output().context("cannot start this program again")?;
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    if !done.status.success() {
        let why = err.lines().chain(out.lines()).next().unwrap_or("no message");
        bail!("{} {} on {:?}: {why}", experiment.kind, experiment.argument, experiment.sides);
    }
    let samples =
        parse_samples(&out).with_context(|| format!("{}: malformed output", experiment.kind))?;
    ensure!(
        samples.len() == experiment.samples as usize,
        "{}: {} samples instead of {}",
        experiment.kind,
        samples.len(),
        experiment.samples
    );
    Ok(samples)
}

/// The ratio of medians, each round of `of` to the same round of `to`.
fn ratio(group: &str, name: &str, of: &Rounds, to: &Rounds) -> Result<Row> {
    let medians = |rounds: &Rounds| -> Result<Vec<f64>> {
        rounds.iter().map(|samples| Ok(Stats::of(samples)?.median)).collect()
    };
    Ok(Row::ratio(name, &medians(of)?, &medians(to)?)?.group(group))
}

/// The group of the exchange's ratios.
const EXCHANGE: &str = "8192 numbers";

fn figures(experiments: &[Experiment], taken: &[Rounds]) -> Result<RowSet> {
    let find = |group: Option<&str>, name: &str| {
        let at = experiments
            .iter()
            .position(|experiment| experiment.group == group && experiment.name == name);
        at.map(|at| &taken[at]).context("no such row")
    };
    let mut set = RowSet::default();
    for (experiment, rounds) in experiments.iter().zip(taken) {
        let micro = |samples: &Vec<u64>| samples.iter().map(|ns| *ns as f64 / 1000.0).collect();
        let micro: Vec<Vec<f64>> = rounds.iter().map(micro).collect();
        let row = Row::from_rounds(experiment.name, "us", &micro)?;
        let Some(group) = experiment.group else {
            set.rows.push(row);
            let (of, to) =
                if experiment.name == "vm" { ("vm", "threads") } else { (experiment.name, "vm") };
            if of != "threads" {
                let name = format!("{of} : {to}");
                set.further.push(ratio(EXCHANGE, &name, find(None, of)?, find(None, to)?)?);
            }
            continue;
        };
        let rate = kyozon_shm::VOLUME as f64 / row.median;
        let moves = ["ring", "place", "across", "copy"].contains(&experiment.kind);
        let row = row.group(group);
        set.further.push(if moves { row.extra("MB_per_s", rate) } else { row });
        if experiment.sides == Sides::Machines {
            continue;
        }
        // `further` lists machines before threads.
        let machines = find(Some(group), "vm")?;
        set.further.push(ratio(group, "vm : threads", machines, rounds)?);
        for copy in ["across", "copy"] {
            let same = |e: &&Experiment| {
                (e.kind, e.argument, e.sides) == (copy, experiment.argument, Sides::Machines)
            };
            if let (true, Some(same)) = (experiment.kind == "ring", experiments.iter().find(same)) {
                let name =
                    if copy == "copy" { "speed, vm : one copy" } else { "speed, vm : copy across" };
                // A ratio of speeds: the copy's time is the numerator.
                set.further.push(ratio(group, name, find(same.group, same.name)?, machines)?);
            }
        }
    }
    Ok(set)
}

/// The rows as lines of text: label, then median, both ends of its 95 % confidence interval and p99, in microseconds.
pub fn text(set: &RowSet) -> String {
    let mut text = String::from(
        "8192 integers there and back, us: median of the rounds, 95 % interval, p99 of all samples\n",
    );
    for row in set.rows.iter().chain(&set.further) {
        let Row { name, median, ci95: [low, high], p99, .. } = row;
        let label =
            row.group.as_ref().map_or_else(|| name.clone(), |group| format!("{group}: {name}"));
        // Writing into a String cannot fail.
        let p99 = p99.map_or_else(|| "-".into(), |p99| format!("{p99:.3}"));
        let _ = write!(text, "{label:<28} {median:>10.3} {low:>10.3} {high:>10.3} {p99:>10}");
        for (column, value) in &row.extra {
            let _ = write!(text, "  {column} {value:.3}");
        }
        text.push('\n');
    }
    text
}

/// Path of the installed image of the experiments.
pub fn image() -> PathBuf {
    crate::colocation::image_folder().join("shm.elf")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_experiment_has_its_command() {
        let experiments: Vec<Experiment> = EXCHANGES.into_iter().chain(further()).collect();
        let line = |name: &str, group: Option<&str>| {
            let experiment = experiments
                .iter()
                .find(|experiment| experiment.name == name && experiment.group == group)
                .unwrap();
            arguments(experiment, Path::new("/i/shm.elf"), "0,1").join(" ")
        };
        let vm = "run --time-limit 60 --pin 0,1 --backend kvm /i/shm.elf -- exchange 200 0";
        assert_eq!(line("vm", None), vm);
        assert_eq!(line("threads", None), "bench-part exchange 200 0");
        assert_eq!(line("tcp", None), "bench-part tcp 30 0");
        assert_eq!(line("threads", Some("ring, 64 KiB")), "bench-part ring 5 65536");
        assert!(line("vm-message", None)
            .contains("--vms 2 --net name=lan,mtu=65520 /i/shm.elf -- frames"));
        assert!(line("process", None).contains("--backend process"));
    }

    #[test]
    fn ratios_pair_equal_rounds() {
        let experiments: Vec<Experiment> = EXCHANGES.into_iter().chain(further()).collect();
        // Each round is twice as slow as the one before; machines take a tenth longer than threads, messages ten times.
        let takes = |experiment: &Experiment| match (experiment.name, experiment.kind) {
            (_, "copy") => 500,
            ("vm", _) => 1100,
            ("threads", _) => 1000,
            _ => 11_000,
        };
        let rounds = |experiment: &Experiment| {
            (0..8).map(|round| vec![takes(experiment) << round; 3]).collect()
        };
        let taken: Vec<Rounds> = experiments.iter().map(rounds).collect();
        let set = figures(&experiments, &taken).unwrap();
        let names: Vec<_> = set.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["vm", "threads", "vm-message", "process", "tcp", "unix", "pipe"]);
        let near = |value: f64, want: f64| assert!((value - want).abs() < 1e-9, "{value} {want}");
        let find = |group: &str, name: &str| {
            let row = |row: &&Row| row.group.as_deref() == Some(group) && row.name == name;
            set.further.iter().find(row).unwrap()
        };
        assert!(set.rows.iter().chain(&set.further).all(|row| row.n == 8), "n counts rounds");
        near(find(EXCHANGE, "vm : threads").ci95[1], 1.1);
        near(find(EXCHANGE, "vm-message : vm").ci95[0], 10.0);
        near(find("ring, 1 MiB", "vm : threads").median, 1.1);
        near(find("ring, 1 MiB", "speed, vm : one copy").median, 500.0 / 1100.0);
        assert!(text(&set).contains("ring, 1 MiB: threads"));
        let json = serde_json::to_string(&set).unwrap();
        assert_eq!(serde_json::from_str::<RowSet>(&json).unwrap(), set);
    }

    #[test]
    fn a_missing_image_is_named() {
        let error = shm(Path::new("/nowhere/shm.elf"), 1, |_| ()).unwrap_err().to_string();
        assert!(error.contains("/nowhere/shm.elf") && error.contains("KYOZON_IMAGES"), "{error}");
    }
}
