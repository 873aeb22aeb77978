//! Table `detection`: how long after a tampering the monitor reports it, and how many short ones it misses.
//!
//! A boot has many rounds. A round tampers in each way once, at a phase of its own, waits for the findings, undoes all,
//! and waits until no finding is open. Boots and rounds differ by their seeds alone, and the clock counts instructions:
//! an instruction is a nanosecond.

use super::cokernel::{MODES, WATCHED};
use super::{described, qemu_version};
use crate::kernels::Kernel;
use crate::{batch, cache, module, product, scenario, spec::Spec};
use anyhow::{ensure, Context, Result};
use kyozon_monitor::random::Random;
use kyozon_results::Row;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const SERIES: &str = "6.12";
const BOOTS: u64 = 10;
const ROUNDS: usize = 20;
const LIMIT: Duration = Duration::from_secs(3600);

const SETUP: &str = "insmod /m/kyozon-attacks.ko 2>/dev/null
ip link set lo up
setsid sleep 100000 </dev/null >/dev/null 2>&1 &
echo $! >/tmp/pid
for program in 1 2; do
	setsid /m/bpf tracepoint sched_switch 2000000 </dev/null >/dev/null 2>&1 &
done
for victim in gains filtered; do
	setsid /m/victim user /nowhere </dev/null >/dev/null 2>&1 &
	echo $! >/tmp/$victim
done
echo 1 >/proc/sys/kernel/unprivileged_bpf_disabled
load=\"--isolation MODE\"
";

/// A way to tamper: the command of the attacks' module, and the class of its finding.
type Attack = (&'static str, &'static str);

/// The attacks' module is listed.
const LISTED: [Attack; 13] = [
    ("exec-memory page", "memory.executable.hidden"),
    ("writable-exec-memory", "memory.executable.writable"),
    ("alias-text", "memory.read-only.writable"),
    ("hook-kprobe tcp4_seq_show", "hook.sensitive"),
    ("hook-proc", "hook.modified"),
    ("patch-module veth_open", "module.text.modified"),
    ("hide-bpf list", "bpf.program-hidden"),
    ("patch-bpf", "bpf.program-modified"),
    ("make-call-gate", "cpu.descriptor.modified"),
    ("redirect-program modprobe_path /tmp/x", "setting.program-redirected"),
    ("lift-protection sysctl_unprivileged_bpf_disabled", "setting.protection-lifted"),
    ("gain-root $(cat /tmp/gains)", "process.privileges-gained"),
    ("lift-filter $(cat /tmp/filtered)", "process.filter-lifted"),
];

/// The module hides itself, and then all of its hooks are hidden ones. The first of them comes before that: otherwise a
/// finding of the others could be taken for its finding, before it is there.
const UNLISTED: [Attack; 8] = [
    ("hook-netfilter", "hook.hidden"),
    ("hide-module", "module.hidden"),
    ("clear-taint", "module.taint-cleared"),
    ("hide-list-pid $(cat /tmp/pid)", "process.hidden"),
    ("patch-text", "kernel.text.modified"),
    ("patch-rodata", "kernel.rodata.modified"),
    ("hook-lstar", "cpu.register.modified"),
    ("hook-gate", "cpu.interrupt-table.modified"),
];

/// Attacks that are undone before the monitor may have looked.
const SHORT: [Attack; 6] = [
    ("hook-lstar", "cpu.register.modified"),
    ("clear-wp", "cpu.register.modified"),
    ("hook-gate", "cpu.interrupt-table.modified"),
    ("move-idt", "cpu.interrupt-table.modified"),
    ("patch-text", "kernel.text.modified"),
    ("hook-kprobe tcp4_seq_show", "hook.sensitive"),
];

/// For how long a short attack stands, in milliseconds.
const HELD_MS: [u64; 3] = [1, 10, 100];
/// The rest after it, at least: a finding counts for the last attack of its class, and can come that much later.
const SETTLE_MS: u64 = 100;

/// An attack of a round, in the order of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Trial {
    attack: &'static str,
    class: &'static str,
    held_ms: Option<u64>,
}

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    let kernel = Kernel::fetch(SERIES, "cloud", false)?;
    let built = module::build(&cache::tree()?.join("linux/attacks"), &kernel)?;
    let attacks = std::fs::read(&built.file)?;
    let (_, bpf) = scenario::compile(&cache::tree()?.join("tests/monitor/quiet/bpf.c"))?;
    let (_, victim) = scenario::compile(&cache::tree()?.join("tests/attacks/reported/victim.c"))?;
    let mut spec = product::install(Spec::new(&kernel))?
        .file("/m/kyozon-attacks.ko", 0o644, attacks)
        .file("/m/bpf", 0o755, bpf)
        .file("/m/victim", 0o755, victim);
    spec.modules.push("veth".into());
    let mut table = described(results, "detection")?
        .version("qemu", &qemu_version()?)
        .version(&format!("linux {SERIES}"), &kernel.version);
    // A boot uses one CPU of the host.
    let measured: Vec<_> = std::thread::scope(|scope| {
        let modes = MODES.map(|mode| (mode, scope.spawn(|| boots(&spec, mode))));
        modes.map(|(mode, boots)| (mode, boots.join().expect("no panic"))).into()
    });
    for (mode, boots) in measured {
        for row in rows(&boots?)? {
            table = table.row(row.group(mode));
        }
    }
    table.write(results)?;
    Ok(())
}

/// The milliseconds until the finding for each trial of each boot; `None` for those that were missed.
type Boot = BTreeMap<Trial, Vec<Option<f64>>>;

fn boots(spec: &Spec, mode: &str) -> Result<Vec<Boot>> {
    let setup = SETUP.replace("MODE", mode) + WATCHED;
    let mut boots = Vec::new();
    for number in 0..BOOTS {
        let mut random = Random::new(number);
        let rounds: Vec<_> = (0..ROUNDS).map(|_| round(&mut random)).collect();
        let mut scripts = vec![setup.as_str()];
        scripts.extend(rounds.iter().map(|(script, _)| script.as_str()));
        let run = batch::run(spec, &scripts, LIMIT)?;
        run.outputs[0].expect_success().context("load the monitor")?;
        let mut boot = Boot::new();
        for (output, (_, trials)) in run.outputs[1..].iter().zip(&rounds) {
            let text = output.expect_success().with_context(|| format!("boot {number}, {mode}"))?;
            for (trial, after) in trials.iter().zip(latencies(&text, trials)?) {
                boot.entry(*trial).or_default().push(after);
            }
        }
        boots.push(boot);
        eprintln!("  {mode}: boot {} of {BOOTS}", number + 1);
    }
    Ok(boots)
}

/// A round as it is put together.
struct Round<'r> {
    random: &'r mut Random,
    script: String,
    trials: Vec<Trial>,
}

/// The script of a round, and its trials.
fn round(random: &mut Random) -> (String, Vec<Trial>) {
    let script = include_str!("detection.sh").to_owned();
    let mut round = Round { random, script, trials: Vec::new() };
    let rest = round.rest(2000);
    round.line(&format!("begin {rest}"));
    round.together(&LISTED);
    for ms in HELD_MS {
        for (attack, class) in SHORT {
            let rest = round.rest_between(ms + SETTLE_MS, ms + SETTLE_MS + 50);
            round.line(&format!("tamper {rest} hold {ms} {attack}"));
            round.trials.push(Trial { attack, class, held_ms: Some(ms) });
        }
        let rest = round.rest(1000);
        round.line(&format!("sleep 2; sleep {rest}"));
    }
    round.together(&UNLISTED);
    round.line("end");
    (round.script, round.trials)
}

impl Round<'_> {
    fn line(&mut self, text: &str) {
        self.script.push_str(text);
        self.script.push('\n');
    }

    /// A rest of at most `most_ms`, in seconds.
    fn rest(&mut self, most_ms: u64) -> String {
        self.rest_between(0, most_ms)
    }

    fn rest_between(&mut self, least_ms: u64, most_ms: u64) -> String {
        let ms = least_ms + self.random.below(most_ms - least_ms);
        format!("{:.3}", ms as f64 / 1000.0)
    }

    /// Attacks that stand together until each is found.
    fn together(&mut self, attacks: &[Attack]) {
        self.line("mark");
        for &(attack, class) in attacks {
            let rest = self.rest(50);
            self.line(&format!("tamper {rest} {attack}"));
            self.trials.push(Trial { attack, class, held_ms: None });
        }
        let classes: Vec<_> = attacks.iter().map(|(_, class)| *class).collect();
        self.line(&format!("found {}", classes.join(" ")));
        // What came last is undone first.
        let names = attacks.iter().rev().map(|(attack, _)| name(attack));
        self.line(&format!("undo {}", names.collect::<Vec<_>>().join(" ")));
    }
}

/// The name of an attack without its argument.
fn name(attack: &str) -> &str {
    attack.split(' ').next().unwrap_or(attack)
}

/// The milliseconds from each trial to its finding, from the output of a round: the lines of the attacks' module in
/// the order of the trials, and all events that the ring has.
fn latencies(text: &str, trials: &[Trial]) -> Result<Vec<Option<f64>>> {
    let done: Vec<(&str, u64)> = text.lines().filter_map(attack).collect();
    let order = done.iter().map(|(name, _)| *name);
    ensure!(
        order.clone().eq(trials.iter().map(|trial| name(trial.attack))),
        "not the attacks of the round: {}",
        order.collect::<Vec<_>>().join(" ")
    );
    let findings = findings(text)?;
    let after = |number: usize| {
        let (class, begin) = (trials[number].class, done[number].1);
        let mut later = trials.iter().zip(&done).skip(number + 1);
        let end =
            later.find(|(trial, _)| trial.class == class).map_or(u64::MAX, |(_, done)| done.1);
        let finding = findings.iter().find(|(of, at)| of == class && (begin..end).contains(at));
        finding.map(|(_, at)| (at - begin) as f64 / 1e6)
    };
    Ok((0..trials.len()).map(after).collect())
}

/// The class and the time of each finding.
fn findings(text: &str) -> Result<Vec<(String, u64)>> {
    let mut findings = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let event: Value = serde_json::from_str(line)?;
        if event["kind"] == "finding" {
            let class = event["class"].as_str().context("a class")?.to_owned();
            findings.push((class, event["tsc"].as_u64().context("a time")?));
        }
    }
    Ok(findings)
}

/// The milliseconds from each attack, all of which have the same class, to the next finding.
pub fn delays(text: &str, class: &str) -> Result<Vec<f64>> {
    let findings = findings(text)?;
    let delay = |(_, done): (&str, u64)| {
        let found = findings.iter().find(|(of, at)| of == class && *at >= done);
        found.map(|(_, at)| (at - done) as f64 / 1e6)
    };
    Ok(text.lines().filter_map(attack).filter_map(delay).collect())
}

/// The attack and its time, from a line `kyozon-attacks: NAME done: ABOUT at tsc TIME`.
fn attack(line: &str) -> Option<(&str, u64)> {
    let (name, rest) = line.strip_prefix("kyozon-attacks: ")?.split_once(" done: ")?;
    Some((name, rest.rsplit_once(" at tsc ")?.1.trim().parse().ok()?))
}

/// A row for each class with the milliseconds until its finding, and one for each short attack with the part that was
/// missed, a boot a sample.
fn rows(boots: &[Boot]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut trials: Vec<Trial> = boots.first().context("no boot")?.keys().copied().collect();
    trials.sort_by_key(|trial| (trial.held_ms.is_some(), trial.class, trial.held_ms));
    for trial in trials {
        let all: Vec<_> = boots.iter().filter_map(|boot| boot.get(&trial)).collect();
        rows.push(match trial.held_ms {
            None => {
                let found: Vec<f64> =
                    all.iter().flat_map(|boot| boot.iter().flatten()).copied().collect();
                let missed =
                    all.iter().flat_map(|boot| boot.iter()).filter(|one| one.is_none()).count();
                let row = Row::from_samples(trial.class, "ms", &found)?.distribution(&found)?;
                row.extra("missed", missed as f64)
            }
            Some(ms) => {
                let part = |boot: &&Vec<Option<f64>>| {
                    let missed = boot.iter().filter(|one| one.is_none()).count();
                    100.0 * missed as f64 / boot.len() as f64
                };
                let parts: Vec<f64> = all.iter().map(part).collect();
                let name = format!("{} for {ms} ms", name(trial.attack));
                Row::from_samples(&name, "per cent missed", &parts)?.counting("boots")
            }
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of a round whose attacks are a second apart, and whose findings come 5 ms after those of `found`.
    fn output(trials: &[Trial], found: impl Fn(&Trial) -> bool) -> String {
        let mut text = String::new();
        for (number, trial) in trials.iter().enumerate() {
            let tsc = number as u64 * 1_000_000_000;
            text += &format!("kyozon-attacks: {} done: x at y at tsc {tsc}\n", name(trial.attack));
        }
        for (number, trial) in trials.iter().enumerate().filter(|(_, trial)| found(trial)) {
            let tsc = number as u64 * 1_000_000_000 + 5_000_000;
            let class = trial.class;
            text += &format!("{{\"kind\":\"finding\",\"class\":\"{class}\",\"tsc\":{tsc}}}\n");
        }
        text
    }

    #[test]
    fn a_round_has_each_trial_once_and_each_seed_a_script() {
        let (first, mut trials) = round(&mut Random::new(0));
        assert_ne!(first, round(&mut Random::new(1)).0);
        assert_eq!(trials.len(), LISTED.len() + UNLISTED.len() + SHORT.len() * HELD_MS.len());
        trials.sort_unstable();
        trials.dedup();
        assert_eq!(trials.len(), LISTED.len() + UNLISTED.len() + SHORT.len() * HELD_MS.len());
    }

    #[test]
    fn a_finding_belongs_to_the_last_attack_of_its_class() {
        let (_, trials) = round(&mut Random::new(0));
        let is_found = |trial: &Trial| trial.held_ms != Some(10);
        let after = latencies(&output(&trials, is_found), &trials).unwrap();
        for (trial, after) in trials.iter().zip(after) {
            assert_eq!(after, is_found(trial).then_some(5.0), "{trial:?}");
        }
        assert!(latencies("", &trials).is_err());
    }

    #[test]
    fn rows_have_the_missed_ones() {
        let (_, trials) = round(&mut Random::new(0));
        let boot = |missed: bool| -> Boot {
            trials.iter().map(|trial| (*trial, vec![Some(4.0), (!missed).then_some(6.0)])).collect()
        };
        let rows = rows(&[boot(true), boot(false)]).unwrap();
        for row in rows {
            match row.unit.as_str() {
                "ms" => assert_eq!((row.n, row.extra["missed"], row.worst), (3, 1.0, 6.0)),
                _ => assert_eq!((row.n, row.avg, row.worst), (2, 25.0, 50.0)),
            }
        }
    }
}
