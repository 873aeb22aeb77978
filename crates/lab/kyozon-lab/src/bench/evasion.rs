//! Table `evasion`: what the monitor finds of an attacker who knows when it looks.
//!
//! The attacker is `evade` of `linux/attacks`: a beacon on the cokernel's CPU learns when the ticks come. A thread on
//! another CPU restores Linux before each tick, and tampers again after it. An instruction is a nanosecond, and one
//! thread of the emulator runs both CPUs. The attacker's loops give way to each other, so that it is seldom late for a
//! tick; the table says how often it was.

use super::cokernel::{MODES, WATCHED};
use super::{described, detection, qemu_version};
use crate::guest::Guest;
use crate::kernels::Kernel;
use crate::{batch, product, spec::Spec};
use anyhow::{ensure, Context, Result};
use kyozon_monitor::random::Random;
use kyozon_results::Row;
use std::path::Path;
use std::time::Duration;

const SERIES: &str = "6.12";
/// Attackers in a mode, one after the other.
const ATTACKERS: usize = 8;
/// How long each of them tampers, in seconds.
const SECONDS: u64 = 30;
const LIMIT: Duration = Duration::from_secs(600);

/// What the attacker changes, as the attacks' module names it and as the rows do, and the class of its finding.
const TARGETS: [(&str, &str, &str); 4] = [
    ("entry", "the entry of system calls", "cpu.register.modified"),
    ("gate", "an interrupt gate", "cpu.interrupt-table.modified"),
    ("text", "kernel text", "kernel.text.modified"),
    ("hook", "a hook", "hook.modified"),
];

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    let kernel = Kernel::fetch(SERIES, "cloud", false)?;
    let mut spec = product::with_attacks(product::install(Spec::new(&kernel))?)?.smp(2);
    // Several threads would share no clock of instructions.
    spec.accel = "tcg,thread=single".into();
    // Both CPUs are one of the host's, which other guests use too.
    spec.boot_limit = LIMIT;
    spec.devices.extend(batch::FIXED_CLOCK.map(String::from));
    let spec = spec.append("tsc=reliable");
    let mut table = described(results, "evasion")?
        .version("qemu", &qemu_version()?)
        .version(&format!("linux {SERIES}"), &kernel.version);
    // A guest uses one CPU of the host.
    let measured: Vec<_> = std::thread::scope(|scope| {
        let modes = MODES.map(|mode| (mode, scope.spawn(|| attackers(&spec, mode))));
        modes.map(|(mode, attackers)| (mode, attackers.join().expect("no panic"))).into()
    });
    for (mode, attackers) in measured {
        for row in rows(&attackers?)? {
            table = table.row(row.group(mode));
        }
    }
    table.write(results)?;
    Ok(())
}

/// What became of an attacker.
#[derive(Debug, PartialEq)]
struct Attacker {
    /// The milliseconds until the finding of each of [`TARGETS`]; `None` for those that were missed.
    found: [Option<f64>; TARGETS.len()],
    /// Part of the time for which Linux was changed.
    per_cent: f64,
    /// Ticks before which Linux was restored, and those for which that was too late.
    ticks: f64,
    late: f64,
}

fn attackers(spec: &Spec, mode: &str) -> Result<Vec<Attacker>> {
    let mut guest = Guest::boot(spec)?;
    let mut run = |script: &str| guest.run_for(script, LIMIT)?.expect_success();
    run("insmod /m/kyozon-attacks.ko")?;
    run(&format!("load='--isolation {mode}'\n{WATCHED}")).context("load the monitor")?;
    let mut random = Random::new(0);
    let names: Vec<_> = TARGETS.iter().map(|(name, ..)| *name).collect();
    let mut attackers = Vec::new();
    for number in 0..ATTACKERS {
        // The cokernel's CPU is left to the beacon.
        let script = format!(
            "{}\nbegin 0.{:03}\ntamper 0 evade {}\ntaskset -c 1 sleep {SECONDS}\nundo evade\nend\n\
             dmesg | grep -o 'evade undone: .*'",
            include_str!("detection.sh"),
            random.below(1000),
            names.join(",")
        );
        attackers.push(attacker(&run(&script)?)?);
        eprintln!("  {mode}: attacker {} of {ATTACKERS}", number + 1);
    }
    Ok(attackers)
}

/// What became of an attacker, from the lines of the attacks' module and all events that the ring has.
fn attacker(text: &str) -> Result<Attacker> {
    let mut found = [None; TARGETS.len()];
    for (found, (_, _, class)) in found.iter_mut().zip(TARGETS) {
        *found = detection::delays(text, class)?.first().copied();
    }
    let [ticks, late, per_cent] = text.lines().find_map(restored).context("the attack's end")?;
    // One that was not there most of the time, or always late, says nothing of the monitor.
    ensure!(
        per_cent > 50.0 && late < ticks / 10.0,
        "{ticks} ticks, {late} late, {per_cent} per cent: the emulator gave the attacker no chance"
    );
    Ok(Attacker { found, per_cent, ticks, late })
}

/// The numbers of a line `evade undone: 3001 ticks, 0 late, 2 unseen, in place 94 per cent`.
fn restored(line: &str) -> Option<[f64; 3]> {
    let mut words = line.strip_prefix("evade undone: ")?.split(' ').map(str::parse);
    let mut next = || words.find_map(Result::ok);
    let [ticks, late, _unseen, per_cent] = [next()?, next()?, next()?, next()?];
    Some([ticks, late, per_cent])
}

fn rows(attackers: &[Attacker]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (index, (_, name, _)) in TARGETS.iter().enumerate() {
        let found: Vec<f64> = attackers.iter().filter_map(|one| one.found[index]).collect();
        let missed: Vec<f64> = attackers
            .iter()
            .map(|one| if one.found[index].is_none() { 100.0 } else { 0.0 })
            .collect();
        rows.push(Row::from_samples(name, "per cent missed", &missed)?.counting("attackers"));
        if !found.is_empty() {
            let row = Row::from_samples(&format!("{name}, until the finding"), "ms", &found)?;
            rows.push(row.counting("findings"));
        }
    }
    let column = |of: fn(&Attacker) -> f64| -> Vec<f64> { attackers.iter().map(of).collect() };
    let changed = Row::from_samples("Linux is changed", "per cent", &column(|one| one.per_cent))?;
    let late = column(|one| 100.0 * one.late / one.ticks);
    let late = Row::from_samples("ticks for which it is late", "per cent", &late)?;
    rows.extend([changed, late].map(|row| row.counting("attackers")));
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An attacker's output, with a finding of a class 7 ms after it began.
    fn output(class: &str, restored: &str) -> String {
        format!(
            "kyozon-attacks: evade done: entry,text, period 10000 us at tsc 1000000\n\
             {{\"kind\":\"finding\",\"class\":\"{class}\",\"tsc\":500000}}\n\
             {{\"kind\":\"finding\",\"class\":\"{class}\",\"tsc\":8000000}}\n\
             evade undone: {restored}\n"
        )
    }

    #[test]
    fn an_attacker_is_found_by_class_after_it_began() {
        let text =
            output("kernel.text.modified", "3000 ticks, 3 late, 2 unseen, in place 94 per cent");
        let found = [None, None, Some(7.0), None];
        let expected = Attacker { found, per_cent: 94.0, ticks: 3000.0, late: 3.0 };
        assert_eq!(attacker(&text).unwrap(), expected);
        for restored in [
            "3000 ticks, 900 late, 2 unseen, in place 94 per cent",
            "3000 ticks, 3 late, 2 unseen, in place 4 per cent",
            "nothing",
        ] {
            assert!(attacker(&output("hook.modified", restored)).is_err(), "{restored}");
        }
    }

    #[test]
    fn rows_have_the_missed_and_the_times_of_the_others() {
        let one = |found| Attacker { found, per_cent: 90.0, ticks: 1000.0, late: 1.0 };
        let rows =
            rows(&[one([Some(4.0), None, None, None]), one([Some(6.0), None, None, Some(9.0)])])
                .unwrap();
        let value = |name: &str| rows.iter().find(|row| row.name == name).map(|row| row.avg);
        assert_eq!(value("the entry of system calls"), Some(0.0));
        assert_eq!(value("the entry of system calls, until the finding"), Some(5.0));
        assert_eq!(value("kernel text"), Some(100.0));
        assert_eq!(value("kernel text, until the finding"), None);
        assert_eq!(value("a hook"), Some(50.0));
        assert_eq!(value("ticks for which it is late"), Some(0.1));
    }
}
