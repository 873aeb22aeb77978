//! What shared memory costs and brings: the experiments of `kyozon-shm`, in virtual machines, in confined processes and
//! on threads, in turns, so that what the machine does meanwhile meets all of them.

use anyhow::{bail, ensure, Context, Result};
use kyozon_results::{parse_samples, Row, RowSet, Stats};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How often each experiment is done.
pub const ROUNDS: u16 = 61;

/// On what an experiment is done.
#[derive(Clone, Copy, Debug, PartialEq)]
enum On {
    /// Two virtual machines.
    Machines,
    /// Two virtual machines with a network.
    Network,
    /// Two guests in processes.
    Processes,
    /// Two threads of one process.
    Threads,
}

/// One row.
#[derive(Clone, Copy, Debug)]
struct Way {
    group: Option<&'static str>,
    name: &'static str,
    on: On,
    experiment: &'static str,
    samples: u32,
    number: u32,
}

const fn exchange(name: &'static str, on: On, experiment: &'static str, samples: u32) -> Way {
    Way { group: None, name, on, experiment, samples, number: 0 }
}

/// The experiment of the paper, on each.
const EXCHANGES: [Way; 7] = [
    exchange("vm", On::Machines, "exchange", 200),
    exchange("threads", On::Threads, "exchange", 200),
    exchange("vm-message", On::Network, "frames", 30),
    exchange("process", On::Processes, "exchange", 200),
    exchange("tcp", On::Threads, "tcp", 30),
    exchange("unix", On::Threads, "unix", 30),
    exchange("pipe", On::Threads, "pipe", 30),
];

/// Group, experiment, samples of a round, the experiment's number. Each on machines and on threads.
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

fn further() -> Vec<Way> {
    let both = |(group, experiment, samples, number)| {
        [("vm", On::Machines), ("threads", On::Threads)].map(|(name, on)| Way {
            group: Some(group),
            name,
            on,
            experiment,
            samples,
            number,
        })
    };
    FURTHER.into_iter().flat_map(both).collect()
}

/// Samples by round, nanoseconds.
type Rounds = Vec<Vec<u64>>;

/// Does all experiments so many times, and tells of it.
///
/// # Errors
///
/// An image that is not there, an experiment that failed, a machine without `/dev/kvm` or with one CPU.
pub fn shm(image: &Path, rounds: u16, mut tell: impl FnMut(u16)) -> Result<RowSet> {
    let program = std::env::current_exe().context("where this program is")?;
    ensure!(
        image.is_file(),
        "{} is not there: it comes with kyozon; KYOZON_IMAGES says where",
        image.display()
    );
    let cpus = kyozon_tender::pins::allowed();
    ensure!(cpus.len() >= 2, "two CPUs are needed; this command may use {}", cpus.len());
    let pin = format!("{},{}", cpus[0], cpus[1]);
    let ways: Vec<Way> = EXCHANGES.into_iter().chain(further()).collect();
    let mut taken = vec![Rounds::new(); ways.len()];
    for round in 0..rounds {
        tell(round);
        // What comes first, and after what, is not always the same.
        for at in (0..ways.len()).map(|at| (at + usize::from(round) * 5) % ways.len()) {
            taken[at].push(measure(&program, image, &pin, &ways[at])?);
        }
    }
    figures(&ways, &taken)
}

/// The words of a command that does it.
fn words(way: &Way, image: &Path, pin: &str) -> Vec<String> {
    let image = image.display().to_string();
    let run: &[&str] = match way.on {
        On::Threads => &["bench-part"],
        On::Machines => &["--backend", "kvm"],
        On::Processes => &["--backend", "process"],
        On::Network => &["--backend", "kvm", "--vms", "2", "--net", "name=lan,mtu=65520"],
    };
    let guests = ["run", "--time-limit", "60", "--pin", pin];
    let (before, after) = match way.on {
        On::Threads => (&[][..], &[][..]),
        _ => (&guests[..], &[image.as_str(), "--"][..]),
    };
    let own = [way.experiment.to_owned(), way.samples.to_string(), way.number.to_string()];
    let words = before.iter().chain(run).chain(after);
    words.map(|word| (*word).to_owned()).chain(own).collect()
}

/// One round of one experiment.
fn measure(program: &Path, image: &Path, pin: &str, way: &Way) -> Result<Vec<u64>> {
    let mut command = Command::new(program);
    command.args(words(way, image, pin)).stdin(Stdio::null());
    let done = command.output().context("cannot start this program once more")?;
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    if !done.status.success() {
        let why = err.lines().chain(out.lines()).next().unwrap_or("no word of why");
        bail!("{} {} on {:?}: {why}", way.experiment, way.number, way.on);
    }
    let samples = parse_samples(&out).with_context(|| format!("{}: its output", way.experiment))?;
    ensure!(samples.len() == way.samples as usize, "{}: {} samples", way.experiment, samples.len());
    Ok(samples)
}

/// Medians of each round over those of the same round of another.
fn ratio(group: &str, name: &str, of: &Rounds, to: &Rounds) -> Result<Row> {
    let medians = |rounds: &Rounds| -> Result<Vec<f64>> {
        rounds.iter().map(|samples| Ok(Stats::of(samples)?.median)).collect()
    };
    Ok(Row::ratio(name, &medians(of)?, &medians(to)?)?.group(group))
}

/// The group of the exchange's ratios.
const EXCHANGE: &str = "8192 numbers";

fn figures(ways: &[Way], taken: &[Rounds]) -> Result<RowSet> {
    let find = |group: Option<&str>, name: &str| {
        let at = ways.iter().position(|way| way.group == group && way.name == name);
        at.map(|at| &taken[at]).context("no such row")
    };
    let mut set = RowSet::default();
    for (way, rounds) in ways.iter().zip(taken) {
        let micro: Vec<f64> = rounds.iter().flatten().map(|ns| *ns as f64 / 1000.0).collect();
        let row = Row::from_samples(way.name, "us", &micro)?;
        let Some(group) = way.group else {
            set.rows.push(row);
            let (of, to) = if way.name == "vm" { ("vm", "threads") } else { (way.name, "vm") };
            if of != "threads" {
                let name = format!("{of} : {to}");
                set.further.push(ratio(EXCHANGE, &name, find(None, of)?, find(None, to)?)?);
            }
            continue;
        };
        let rate = kyozon_shm::VOLUME as f64 / row.median;
        let moves = ["ring", "place", "across", "copy"].contains(&way.experiment);
        let row = row.group(group);
        set.further.push(if moves { row.extra("MB_per_s", rate) } else { row });
        if way.on == On::Machines {
            continue;
        }
        // Both have been: machines come first.
        let machines = find(Some(group), "vm")?;
        set.further.push(ratio(group, "vm : threads", machines, rounds)?);
        for copy in ["across", "copy"] {
            let same =
                |w: &&Way| (w.experiment, w.number, w.on) == (copy, way.number, On::Machines);
            if let (true, Some(same)) = (way.experiment == "ring", ways.iter().find(same)) {
                let name =
                    if copy == "copy" { "speed, vm : one copy" } else { "speed, vm : copy across" };
                // Speeds: the copy's time comes first.
                set.further.push(ratio(group, name, find(same.group, same.name)?, machines)?);
            }
        }
    }
    Ok(set)
}

/// The rows as lines of text: label, then median, both ends of its 95 % confidence interval and p99, in microseconds.
pub fn text(set: &RowSet) -> String {
    let mut text = String::from("8192 integers there and back, us: median, 95 % interval, p99\n");
    for row in set.rows.iter().chain(&set.further) {
        let Row { name, median, ci95: [low, high], p99, .. } = row;
        let label =
            row.group.as_ref().map_or_else(|| name.clone(), |group| format!("{group}: {name}"));
        // Writing into a String cannot fail.
        let _ = write!(text, "{label:<28} {median:>10.3} {low:>10.3} {high:>10.3} {p99:>10.3}");
        for (column, value) in &row.extra {
            let _ = write!(text, "  {column} {value:.3}");
        }
        text.push('\n');
    }
    text
}

/// The image of the experiments, in the folder of images.
pub fn image() -> PathBuf {
    crate::colocation::image_folder().join("shm.elf")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_for_each_way() {
        let ways: Vec<Way> = EXCHANGES.into_iter().chain(further()).collect();
        let line = |name: &str, group: Option<&str>| {
            let way = ways.iter().find(|way| way.name == name && way.group == group).unwrap();
            words(way, Path::new("/i/shm.elf"), "0,1").join(" ")
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
    fn a_ratio_is_of_the_same_round() {
        let ways: Vec<Way> = EXCHANGES.into_iter().chain(further()).collect();
        // The machine is twice as slow in each round; machines take a tenth longer than threads, messages ten times.
        let takes = |way: &Way| match (way.name, way.experiment) {
            (_, "copy") => 500,
            ("vm", _) => 1100,
            ("threads", _) => 1000,
            _ => 11_000,
        };
        let rounds = |way: &Way| (0..8).map(|round| vec![takes(way) << round; 3]).collect();
        let taken: Vec<Rounds> = ways.iter().map(rounds).collect();
        let set = figures(&ways, &taken).unwrap();
        let names: Vec<_> = set.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["vm", "threads", "vm-message", "process", "tcp", "unix", "pipe"]);
        let near = |value: f64, want: f64| assert!((value - want).abs() < 1e-9, "{value} {want}");
        let find = |group: &str, name: &str| {
            let row = |row: &&Row| row.group.as_deref() == Some(group) && row.name == name;
            set.further.iter().find(row).unwrap()
        };
        near(find(EXCHANGE, "vm : threads").ci95[1], 1.1);
        near(find(EXCHANGE, "vm-message : vm").ci95[0], 10.0);
        near(find("ring, 1 MiB", "vm : threads").median, 1.1);
        near(find("ring, 1 MiB", "speed, vm : one copy").median, 500.0 / 1100.0);
        assert!(text(&set).contains("ring, 1 MiB: threads"));
        let json = serde_json::to_string(&set).unwrap();
        assert_eq!(serde_json::from_str::<RowSet>(&json).unwrap(), set);
    }

    #[test]
    fn an_image_that_is_not_there() {
        let error = shm(Path::new("/nowhere/shm.elf"), 1, |_| ()).unwrap_err().to_string();
        assert!(error.contains("/nowhere/shm.elf") && error.contains("KYOZON_IMAGES"), "{error}");
    }
}
