//! Table `typed-calls`: a system call against the call of a typed program in kernel mode, in instructions.

use super::costs::Costs;
use super::{described, qemu_version};
use crate::kernels::{Kernel, SERIES};
use crate::scenario::{compile, typed};
use crate::{batch, cache, product, spec::Spec};
use anyhow::{Context, Result};
use kyozon_results::{Row, Stats};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Time limit of one guest, in real time.
const LIMIT: Duration = Duration::from_secs(1200);
/// Operations of `tests/typed/calls/calls.c`.
const CALLS: [&str; 12] = [
    "getpid",
    "getpid-vectors",
    "read",
    "write",
    "fstat",
    "pread",
    "pwrite",
    "pipe",
    "write-16K",
    "re-write-16K",
    "read-16K",
    "re-read-16K",
];
/// Words for the kernel's command line, the group's name, and writes of CR3 in a system call.
const TABLES: [(&str, &str, u64); 2] = [("pti=on", "pti", 2), ("pti=off", "no pti", 0)];
/// What the processor does in a system call beside instructions: syscall and sysret, and swapgs on the way in and out.
const SYSTEM_CALL: [(&str, u64); 3] = [("syscall", 1), ("sysret", 1), ("swapgs", 2)];
/// System calls of an operation.
fn system_calls(name: &str) -> u64 {
    if name == "pipe" {
        2
    } else {
        1
    }
}

/// Ways to make a call, as the guest's program prints them and as the rows name them.
const CALL: &str = "call";
const TYPED: &str = "typed";
const SKIPPED: &str = "skipped";

/// Samples by operation and way.
type Samples = BTreeMap<(String, String), Vec<f64>>;

/// What the guest's program printed: lines of an operation, a way and a number.
fn parse(text: &str, hooks_skipped: bool, samples: &mut Samples) -> Result<()> {
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, way, number] = words[..] else { anyhow::bail!("a strange line: {line}") };
        let way = match (way, hooks_skipped) {
            (TYPED, true) => SKIPPED,
            (_, true) => continue,
            (way, false) => way,
        };
        let number = number.parse().with_context(|| line.to_owned())?;
        samples.entry((name.into(), way.into())).or_default().push(number);
    }
    Ok(())
}

/// All samples of one boot.
fn run(kernel: &Kernel, append: &str) -> Result<Samples> {
    let folder = cache::tree()?.join("tests/typed/calls");
    let mut spec = product::install_typed(Spec::new(kernel).append(append))?;
    for (name, file) in typed::assemble(&folder)? {
        spec = spec.file(&format!("/m/typed/{name}"), 0o644, file);
    }
    let (_, program) = compile(&folder.join("calls.c"))?;
    spec = spec.file("/bin/calls", 0o755, program);
    let each = "calls /m/typed/calls/calls.typed /m/typed/calls/vectors.typed";
    // Linux tests its ciphers when it has booted.
    let prepare = "while pidof cryptomgr_test >/dev/null; do sleep 1; done\n\
        insmod /lib/modules/*/extra/kyozon-typed.ko";
    let skip = format!("echo Y >/sys/module/kyozon_typed/parameters/skip_hooks\n{each}");
    let finished = batch::run(&spec, &[prepare, each, &skip], LIMIT)?;
    finished.outputs[0].expect_success()?;
    let mut samples = Samples::new();
    parse(&finished.outputs[1].expect_success()?, false, &mut samples)?;
    parse(&finished.outputs[2].expect_success()?, true, &mut samples)?;
    Ok(samples)
}

/// The median of an operation in one way.
fn median(samples: &Samples, name: &str, way: &str) -> Result<f64> {
    let all = samples.get(&(name.to_owned(), way.to_owned()));
    Ok(Stats::of(all.with_context(|| format!("no samples of {name} {way}"))?)?.median)
}

/// Digits that a ratio is rounded to.
fn rounded(ratio: f64) -> f64 {
    (ratio * 1000.0).round() / 1000.0
}

/// The rows of one boot. `cr3_writes` are those of a system call.
fn rows(samples: &Samples, group: &str, cr3_writes: u64, costs: &Costs) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for name in CALLS {
        let call = median(samples, name, CALL)?;
        for (way, label) in
            [(CALL, "system call"), (TYPED, "kernel mode"), (SKIPPED, "kernel mode, hooks skipped")]
        {
            let all = &samples[&(name.to_owned(), way.to_owned())];
            let mut row = Row::from_samples(&format!("{name}, {label}"), "instructions", all)?;
            if way != CALL {
                let ratio = rounded(row.median / call);
                row = row.extra("of_system_call", ratio);
            }
            rows.push(row.group(group));
        }
        let mut events: BTreeMap<String, u64> =
            SYSTEM_CALL.iter().map(|(event, n)| ((*event).to_owned(), *n)).collect();
        events.insert("cr3_write".into(), cr3_writes);
        for count in events.values_mut() {
            *count *= system_calls(name);
        }
        for (cpu, order) in costs.cpus() {
            let typed = median(samples, name, TYPED)?;
            let call = costs.model(cpu, call.round() as u64, &events)?;
            let typed = costs.model(cpu, typed.round() as u64, &BTreeMap::new())?;
            for (label, cycles) in [("system call", call), ("kernel mode", typed)] {
                let title = format!("{name}, {label}, {cpu} ({order})");
                let mut row = Row::from_samples(&title, "modelled cycles", &[cycles])?;
                if label != "system call" {
                    row = row.extra("of_system_call", rounded(typed / call));
                }
                rows.push(row.group(group));
            }
        }
    }
    Ok(rows)
}

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    let costs = Costs::read(results)?;
    let mut table = described(results, "typed-calls")?.version("qemu", &qemu_version()?);
    for series in SERIES {
        let kernel = Kernel::fetch(series, "cloud", false)?;
        table = table.version(&format!("linux {series}"), &kernel.version);
        for (append, name, cr3_writes) in TABLES {
            let group = format!("{series} {name}");
            let samples = run(&kernel, append).with_context(|| group.clone())?;
            for row in rows(&samples, &group, cr3_writes, &costs)? {
                table = table.row(row);
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
    fn lines_become_samples_by_operation_and_way() {
        let mut samples = Samples::new();
        parse("read call 300\nread typed 100.5\nread typed 99.5\n", false, &mut samples).unwrap();
        parse("read call 1\nread typed 50\n", true, &mut samples).unwrap();
        assert_eq!(median(&samples, "read", CALL).unwrap(), 300.0);
        assert_eq!(median(&samples, "read", TYPED).unwrap(), 100.0);
        assert_eq!(median(&samples, "read", SKIPPED).unwrap(), 50.0);
        assert!(median(&samples, "write", CALL).is_err());
        for bad in ["read call\n", "read call x\n"] {
            assert!(parse(bad, false, &mut samples).is_err(), "{bad}");
        }
    }

    #[test]
    fn rows_compare_with_the_system_call() {
        let costs: Costs = toml::from_str(
            "[substitute]\n[cpu.a]\norder = \"in-order\"\ninstructions_per_cycle = { value = 1.0 }\n\
             event.syscall.cycles = 30\nevent.sysret.cycles = 30\nevent.swapgs.cycles = 20\n\
             event.cr3_write.cycles = 100\n",
        )
        .unwrap();
        let mut samples = Samples::new();
        for name in CALLS {
            for (way, number) in [(CALL, 200.0), (TYPED, 50.0), (SKIPPED, 40.0)] {
                samples.insert((name.into(), way.into()), vec![number; 3]);
            }
        }
        let rows = rows(&samples, "g", 2, &costs).unwrap();
        assert_eq!(rows.len(), CALLS.len() * 5);
        assert_eq!((rows[1].median, rows[1].extra["of_system_call"]), (50.0, 0.25));
        assert_eq!(rows[2].extra["of_system_call"], 0.2);
        assert_eq!((rows[3].median, rows[4].extra["of_system_call"]), (500.0, 0.1));
        let pipe = rows.iter().find(|row| row.name == "pipe, system call, a (in-order)").unwrap();
        assert_eq!(pipe.median, 800.0, "two system calls");
    }
}
