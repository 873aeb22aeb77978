//! Table `kv`: the key-value store in virtual machines, in processes and as host threads, by a stock client.
//!
//! Each variant has a network namespace of its own, with the client at the host's end of a TAP device. All variants run
//! at the same time, and the client asks one after the other, round by round.

use super::described;
use crate::process::{self, Group};
use crate::product;
use anyhow::{bail, ensure, Context, Result};
use kyozon_results::{Row, Table};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Rounds. In each, every variant serves every request type once; odd rounds reverse the order.
const ROUNDS: usize = 25;
/// Commands that the client sends before it waits for answers, and commands of one sample.
const PIPELINES: [(usize, usize); 2] = [(1, 30_000), (16, 400_000)];
/// Commands of the client.
const COMMANDS: [&str; 2] = ["SET", "GET"];
/// Workers of the store.
const WORKERS: &str = "2";
/// Samples of each call in a round.
const CALLS: &str = "100";
/// Number of keys that the client chooses from.
const KEYS: &str = "10000";
/// The store's address.
const SERVER: &str = "10.9.0.2";
/// Time limit of one run of the client.
const LIMIT: Duration = Duration::from_secs(60);

/// Starts the store, gives the host an address on the store's network, and waits for the store's end.
const SCRIPT: &str = "\"$@\" & store=$!
for i in $(seq 100); do busybox ip addr add 10.9.0.1/24 dev kv0 2>/dev/null && break; sleep 0.1; done
busybox ip link set kv0 up
wait $store";

/// The first requirement that this machine lacks.
pub fn missing() -> Option<String> {
    let found = |program: &str| {
        process::run(Command::new(program).arg("--version"), Duration::from_secs(20)).is_ok()
    };
    if !rustix::process::geteuid().is_root() {
        return Some("root, to create a TAP device".into());
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("/dev/net/tun".into());
    }
    let programs =
        [("redis-benchmark", "redis-tools"), ("nsenter", "util-linux"), ("busybox", "busybox")];
    let missing = programs.iter().find(|(program, _)| !found(program));
    missing.map(|(program, package)| format!("{program}: apt-get install {package}"))
}

/// The backend of the variant `name`.
fn backend(name: &str) -> &str {
    if name == "vm" {
        "kvm"
    } else {
        name
    }
}

/// A running store.
struct Store {
    name: &'static str,
    group: Group,
}

impl Store {
    fn start(name: &'static str) -> Result<Self> {
        let mut command = Command::new("unshare");
        command.args(["-n", "sh", "-c", SCRIPT, "sh"]);
        if name == "threads" {
            command.arg(product::file("kv-threads")?).arg("tap=kv0");
        } else {
            command.arg(product::file("kyozon")?).args(["run", "--backend", backend(name)]);
            command.args(["--net", "name=lan,tap=kv0"]).arg(product::file("kv.elf")?).arg("--");
        }
        command.args(["10.9.0.2/24", "6379", WORKERS]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut store = Self { name, group: Group::spawn(&mut command)? };
        let end = Instant::now() + Duration::from_secs(30);
        while !store.client("redis-cli", &["-h", SERVER, "ping"]).is_ok_and(|said| said == "PONG\n")
        {
            ensure!(store.group.ended()?.is_none(), "{name}: the store ended");
            ensure!(Instant::now() < end, "{name}: the store does not answer");
            thread::sleep(Duration::from_millis(100));
        }
        Ok(store)
    }

    /// Runs a program in the store's network namespace and returns its output.
    fn client(&mut self, program: &str, arguments: &[&str]) -> Result<String> {
        let network = format!("--net=/proc/{}/ns/net", self.group.child().id());
        process::run_ok(Command::new("nsenter").arg(network).arg(program).args(arguments), LIMIT)
    }

    /// Microseconds per request, for each of [`COMMANDS`].
    fn measure(&mut self, pipeline: usize, requests: usize) -> Result<Vec<f64>> {
        let numbers = [requests.to_string(), pipeline.to_string()];
        let output = self.client(
            "redis-benchmark",
            &[
                "-h",
                SERVER,
                "-t",
                "set,get",
                "-r",
                KEYS,
                "-n",
                &numbers[0],
                "-P",
                &numbers[1],
                "-q",
                "--csv",
            ],
        )?;
        let rates = rates(&output).with_context(|| format!("{}: {output}", self.name))?;
        Ok(rates.iter().map(|rate| 1e6 / rate).collect())
    }

    fn stop(mut self) -> Result<()> {
        // The store closes the connection without an answer, which redis-cli reports as an error.
        let _ = self.client("redis-cli", &["-h", SERVER, "shutdown", "nosave"]);
        match self.group.wait(Duration::from_secs(20))? {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("{}: the store ended with {status}", self.name),
            None => bail!("{}: the store does not end", self.name),
        }
    }
}

/// Requests per second, for each of [`COMMANDS`], from the client's output.
fn rates(output: &str) -> Result<Vec<f64>> {
    let rate = |command: &&str| {
        let start = format!("\"{command}\",\"");
        let line = output.lines().find_map(|line| line.strip_prefix(&start));
        let rate: f64 = line
            .and_then(|line| line.split('"').next())
            .context("no rate in the output")?
            .parse()?;
        ensure!(rate > 0.0, "a rate of 0");
        Ok(rate)
    };
    COMMANDS.iter().map(rate).collect()
}

/// Samples of one variant: by pipeline, then command.
type Taken = [[Vec<f64>; COMMANDS.len()]; PIPELINES.len()];

/// Adds the rows of one command with one pipeline.
fn rows(table: Table, group: &str, taken: &[(&str, &[f64])]) -> Result<Table> {
    let mut table = table;
    for (name, samples) in taken {
        table = table.row(Row::from_samples(name, "us", samples)?.group(group));
    }
    let Some((_, threads)) = taken.iter().find(|(name, _)| *name == "threads") else {
        return Ok(table);
    };
    for (name, samples) in taken.iter().filter(|(name, _)| *name != "threads") {
        let row = Row::ratio(&format!("{name} : threads"), samples, threads)?;
        table = table.row(row.group(group));
    }
    Ok(table)
}

/// Adds two operations that front and workers need beside their work: giving a token when no peer sleeps, and a sleep
/// whose time is already over. Neither waits. In each round every backend runs both.
fn exits(mut table: Table, names: &[&str]) -> Result<Table> {
    const OPERATIONS: [(&str, &str); 2] = [("to give a token", "token"), ("to go to sleep", "nap")];
    let mut taken = vec![[const { Vec::new() }; OPERATIONS.len()]; names.len()];
    for _ in 0..ROUNDS {
        for (name, taken) in names.iter().zip(&mut taken) {
            for ((_, experiment), taken) in OPERATIONS.iter().zip(taken) {
                let mut command = super::kyozon()?;
                command.args(["run", "--backend", backend(name)]).arg(product::file("shm.elf")?);
                let output = process::run_ok(command.args(["--", experiment, CALLS]), LIMIT)?;
                taken.push(super::micros(&output)?);
            }
        }
    }
    for (name, taken) in names.iter().zip(&taken) {
        for ((row, _), rounds) in OPERATIONS.iter().zip(taken) {
            table = table.row(Row::from_rounds(row, "us", rounds)?.group(name));
        }
    }
    Ok(table)
}

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    if let Some(what) = missing() {
        bail!("needs {what}");
    }
    let version = process::run_ok(Command::new("redis-benchmark").arg("--version"), LIMIT)?;
    let mut table = described(results, "kv")?
        .version("redis-benchmark", version.split_whitespace().nth(1).unwrap_or("unknown"));
    let mut names = vec!["threads", "process"];
    // Virtual machines only if the host has KVM.
    if fs::File::options().read(true).write(true).open("/dev/kvm").is_ok() {
        names.insert(0, "vm");
    }
    let mut stores = names.iter().map(|name| Store::start(name)).collect::<Result<Vec<_>>>()?;
    let mut taken: Vec<Taken> = names.iter().map(|_| Taken::default()).collect();
    for round in 0..=ROUNDS {
        for (at, (pipeline, requests)) in PIPELINES.into_iter().enumerate() {
            let mut order: Vec<usize> = (0..stores.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for store in order {
                let samples = stores[store].measure(pipeline, requests)?;
                // The first round differs from later ones and is not counted.
                for (command, sample) in samples.into_iter().enumerate().filter(|_| round > 0) {
                    taken[store][at][command].push(sample);
                }
            }
        }
    }
    for (at, (pipeline, _)) in PIPELINES.into_iter().enumerate() {
        for (number, command) in COMMANDS.into_iter().enumerate() {
            let samples: Vec<_> = names
                .iter()
                .zip(&taken)
                .map(|(name, taken)| (*name, &*taken[at][number]))
                .collect();
            table = rows(table, &format!("{command}, pipeline {pipeline}"), &samples)?;
        }
    }
    stores.into_iter().try_for_each(Store::stop)?;
    names.retain(|name| *name != "threads");
    exits(table, &names)?.write(results)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_from_the_client() {
        let output = "\"test\",\"rps\",\"avg_latency_ms\"\n\"SET\",\"20964.36\",\"0.853\"\n\
                      \"GET\",\"50000.00\",\"1.1\"\n";
        assert_eq!(rates(output).unwrap(), [20964.36, 50000.0]);
        assert!(rates("\"test\",\"rps\"\n\"SET\",\"1.0\"\n").is_err());
        assert!(rates("\"SET\",\"0.00\"\n\"GET\",\"1.00\"\n").is_err());
    }

    #[test]
    fn ratios_pair_the_rounds() {
        let table = Table::new("kv", "t", "e", "c");
        let taken: [(&str, &[f64]); 2] = [("vm", &[2.0, 6.0, 3.0]), ("threads", &[1.0, 2.0, 3.0])];
        let table = rows(table, "GET", &taken).unwrap();
        let row = table.rows.iter().find(|row| row.name == "vm : threads").unwrap();
        assert_eq!((row.median, row.ci95[1]), (2.0, 3.0));
    }
}
