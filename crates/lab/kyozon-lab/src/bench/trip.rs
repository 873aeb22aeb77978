//! Table `trip`: the cost of one tick of the cokernel, by instructions and events.
//!
//! A plug-in of the emulator (`crates/lab/counter`) follows every instruction from the interrupt's gate to the
//! return.

use super::alone::{self, HPET, HPET_PIN};
use super::cokernel::{guest, workload, LIMIT, MODES};
use super::costs::Costs;
use super::{described, qemu_version};
use crate::kernels::Kernel;
use crate::{batch, cache, product};
use anyhow::{ensure, Context, Result};
use kyozon_results::{Row, Stats, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Minimum number of trips in a run.
const TICKS: usize = 3000;
/// Further ticks: the plug-in recognises a trip only after the first one.
const MORE: usize = 100;
const TICK_HZ: u32 = 2000;
/// For mode none: addresses of the layer and of the kernel's modules.
const BESIDE: &str = "ours=10000000-20000000,ours=ffffffffc0000000-ffffffffff000000";
/// For mode vmm: addresses of the hypervisor and of the layer. No code of Linux is part of a trip.
const BEHIND: &str = "ours=8000000-20000000";
/// Without Linux: addresses of the program that replaces it.
pub const ALONE: &str = "ours=100000-10000000";
const COKERNEL: &str = "cokernel=20000000-30000000";

/// Events with a bound; a row has their columns even if the count is 0.
const BOUND: [&str; 6] = ["cr3_write", "lidt", "lgdt", "ltr", "wrmsr", "mmio"];

/// The cost of one stage of a trip.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    pub instructions: u64,
    pub events: BTreeMap<String, u64>,
}

impl Cost {
    fn add(&mut self, other: &Self) {
        self.instructions += other.instructions;
        for (event, n) in &other.events {
            *self.events.entry(event.clone()).or_default() += n;
        }
    }
}

/// One kind of trip, with the number of such trips.
#[derive(Debug, Default, PartialEq)]
pub struct Trip {
    pub count: usize,
    stages: BTreeMap<String, Cost>,
}

impl Trip {
    /// The cost of several stages together.
    pub fn sum(&self, stages: &[&str]) -> Cost {
        let mut sum = Cost::default();
        for cost in stages.iter().filter_map(|name| self.stages.get(*name)) {
            sum.add(cost);
        }
        sum
    }
}

/// The trips in the plug-in's file.
fn parse(text: &str) -> Result<Vec<Trip>> {
    let trips = kinds(text)?;
    let all: usize = trips.iter().map(|trip| trip.count).sum();
    ensure!(all >= TICKS, "{all} trips were recorded, not {TICKS}");
    Ok(trips)
}

/// The lines of the plug-in's file.
pub fn kinds(text: &str) -> Result<Vec<Trip>> {
    let mut trips = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let count = words.next().context("an empty line")?.parse()?;
        let mut trip = Trip { count, ..Trip::default() };
        let mut stage = None;
        while let Some(word) = words.next() {
            match (word.split_once('='), &stage) {
                (Some((event, n)), Some(name)) => {
                    let cost = trip.stages.get_mut(name).expect("just inserted");
                    cost.events.insert(event.into(), n.parse()?);
                }
                (None, _) => {
                    let instructions = words.next().context("a stage without a number")?.parse()?;
                    stage = Some(word.to_owned());
                    trip.stages.insert(word.into(), Cost { instructions, ..Cost::default() });
                }
                _ => anyhow::bail!("an event before any stage: {line}"),
            }
        }
        trips.push(trip);
    }
    Ok(trips)
}

/// The plug-in, built beside this program.
fn plugin() -> Result<PathBuf> {
    let path = env::current_exe()?.with_file_name("libkyozon_counter.so");
    ensure!(path.is_file(), "{}: not found: run make build", path.display());
    Ok(path)
}

/// `-plugin` and its value; the plug-in writes to `out`.
pub fn plugin_arguments(map: &str, out: &Path) -> Result<[String; 2]> {
    let plugin = plugin()?;
    Ok(["-plugin".into(), format!("{},out={},{map},{COKERNEL}", plugin.display(), out.display())])
}

/// A Linux beside which the cokernel is measured.
struct Beside {
    series: &'static str,
    /// Words added to its command line.
    append: &'static str,
    hpet: &'static [&'static str],
    /// What the groups' names add to mode and series.
    suffix: &'static str,
}

/// Group of the cokernel without Linux whose ticks come through the IO-APIC, and the suffix of such groups.
const PIN: &str = " IO-APIC";

const BESIDES: [Beside; 4] = [
    Beside { series: "6.12", append: "", hpet: &HPET, suffix: "" },
    Beside { series: "6.12", append: "", hpet: &HPET_PIN, suffix: PIN },
    Beside { series: "6.12", append: "mitigations=off", hpet: &HPET, suffix: " mitigations=off" },
    Beside { series: "6.1", append: "", hpet: &HPET, suffix: "" },
];

fn beside_linux(kernel: &Kernel, beside: &Beside, isolation: &str) -> Result<Vec<Trip>> {
    let folder = cache::scratch()?;
    let out = folder.path().join("trips");
    let map = if isolation == "none" { BESIDE } else { BEHIND };
    let mut spec = guest(kernel, beside.append)?;
    spec.devices = beside.hpet.iter().map(|word| (*word).to_owned()).collect();
    spec.devices.extend(plugin_arguments(map, &out)?);
    let load = format!("--isolation {isolation} --hz {TICK_HZ} --parameter 0");
    let run = batch::run(&spec, &[&workload(&load, TICKS + MORE, TICKS + MORE)], LIMIT)?;
    run.outputs[0].expect_success()?;
    parse(&fs::read_to_string(out)?)
        .with_context(|| format!("the cokernel beside Linux {}", kernel.release))
}

fn without_linux(hpet: &[&str]) -> Result<Vec<Trip>> {
    let folder = cache::scratch()?;
    let out = folder.path().join("trips");
    let image = fs::read(product::file("cokernel-test.bin")?)?;
    let append = format!("hz={TICK_HZ} parameter=0 ticks={}", TICKS + MORE);
    alone::run_with(hpet, &image, &append, &plugin_arguments(ALONE, &out)?, LIMIT)?;
    parse(&fs::read_to_string(out)?).context("the cokernel alone")
}

/// A row of instructions, with the 99th percentile of each event's count as an extra column.
fn row(name: &str, group: &str, trips: &[Trip], stages: &[&str]) -> Result<Row> {
    let costs: Vec<(usize, Cost)> =
        trips.iter().map(|trip| (trip.count, trip.sum(stages))).collect();
    let samples: Vec<u64> = costs
        .iter()
        .flat_map(|(count, cost)| std::iter::repeat_n(cost.instructions, *count))
        .collect();
    let mut row = Row::from_samples(name, "instructions", &samples)?.group(group);
    let bound = BOUND.map(String::from);
    let mut events: BTreeSet<&String> =
        costs.iter().flat_map(|(_, cost)| cost.events.keys()).collect();
    events.extend(&bound);
    for event in events {
        let counts: Vec<u64> = costs
            .iter()
            .flat_map(|(count, cost)| {
                std::iter::repeat_n(cost.events.get(event).copied().unwrap_or(0), *count)
            })
            .collect();
        let p99 = Stats::of(&counts)?.p99.context("too few trips for a 99th percentile")?;
        if p99 > 0.0 || BOUND.contains(&event.as_str()) {
            row = row.extra(event, p99);
        }
    }
    Ok(row)
}

fn modelled(costs: &Costs, cpu: &str, trips: &[Trip], stages: &[&str]) -> Result<Vec<f64>> {
    let mut samples = Vec::new();
    for trip in trips {
        let cost = trip.sum(stages);
        let cycles = costs.model(cpu, cost.instructions, &cost.events)?;
        samples.extend(std::iter::repeat_n(cycles, trip.count));
    }
    Ok(samples)
}

/// Stages up to the cokernel's tick handler.
const TO_HANDLER: [&str; 2] = ["entry", "path"];
/// Stages that are Kyozon's, to the cokernel and from it.
const THERE_AND_BACK: [&str; 2] = ["path", "back"];

/// Adds the rows of `group`. `than` has short and full names of the groups to which modelled cycles are compared.
fn add(
    table: &mut Table,
    costs: &Costs,
    group: &str,
    trips: &[Trip],
    than: &[(&str, String)],
) -> Result<()> {
    table.rows.push(row("to the handler", group, trips, &TO_HANDLER)?);
    if group.starts_with("none") {
        table.rows.push(row("Linux before the module", group, trips, &["entry"])?);
        table.rows.push(row("Linux after the module", group, trips, &["exit"])?);
    }
    table.rows.push(row("there and back", group, trips, &THERE_AND_BACK)?);
    for (stages, way) in [(&TO_HANDLER, ""), (&THERE_AND_BACK, ", there and back")] {
        for (cpu, order) in costs.cpus() {
            if group.starts_with("vmm") && !costs.has(cpu, "vmrun") {
                continue;
            }
            let name = format!("{cpu} ({order}){way}");
            let samples = modelled(costs, cpu, trips, stages)?;
            let mut row = Row::from_samples(&name, "modelled cycles", &samples)?.group(group);
            for (short, other) in than {
                let of = |row: &&Row| row.group.as_deref() == Some(other) && row.name == name;
                if let Some(other) = table.rows.iter().find(of) {
                    let times = (row.median / other.median * 100.0).round() / 100.0;
                    row = row.extra(&format!("times_{short}"), times);
                }
            }
            table.rows.push(row);
        }
    }
    Ok(())
}

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    let costs = Costs::read(results)?;
    let mut table = described(results, "trip")?.version("qemu", &qemu_version()?);
    add(&mut table, &costs, "alone", &without_linux(&HPET)?, &[])?;
    add(&mut table, &costs, &format!("alone{PIN}"), &without_linux(&HPET_PIN)?, &[])?;
    for beside in &BESIDES {
        let Beside { series, suffix, .. } = beside;
        let kernel = Kernel::fetch(series, "cloud", false)?;
        let alone = if *suffix == PIN { suffix } else { "" };
        let mut than = vec![("alone", format!("alone{alone}"))];
        for mode in MODES {
            let group = format!("{mode} {series}{suffix}");
            let trips = beside_linux(&kernel, beside, mode)?;
            add(&mut table, &costs, &group, &trips, &than)?;
            than.push((mode, group));
        }
        table = table.version(&format!("linux {series}"), &kernel.version);
    }
    table.write(results)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_trips() {
        let text =
            format!("{TICKS} entry 20 nmi_delivery=1 swapgs=1 path 30 lidt=1 cokernel 5 back 40 lidt=1 exit 9\n");
        let trips = parse(&text).unwrap();
        assert_eq!(trips[0].sum(&["path", "back"]).instructions, 70);
        let all = trips[0].sum(&["entry", "path"]);
        assert_eq!((all.instructions, all.events["nmi_delivery"], all.events["lidt"]), (50, 1, 1));
        let row = row("x", "g", &trips, &["path", "back"]).unwrap();
        assert_eq!((row.n, row.extra["lidt"]), (TICKS as u64, 2.0));
        for bad in ["1 entry 5 exit 7\n", "9999 lidt=1\n", "9999 entry\n", "x entry 1\n"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn modelled_cycles_are_compared_across_groups() {
        let costs: Costs = toml::from_str(
            "[substitute]\n\
             [cpu.a]\norder = \"in-order\"\ninstructions_per_cycle = { value = 1.0 }\nevent.vmrun.cycles = 60\n\
             [cpu.b]\norder = \"in-order\"\ninstructions_per_cycle = { value = 1.0 }\nevent.lidt.cycles = 1\n",
        )
        .unwrap();
        let mut table = Table::new("trip", "t", "e", "c");
        let short = parse(&format!("{TICKS} entry 10 path 10 back 5 exit 0\n")).unwrap();
        let long = parse(&format!("{TICKS} entry 0 path 20 vmrun=1 back 5 exit 0\n")).unwrap();
        let than = [("alone", "alone".to_owned())];
        add(&mut table, &costs, "alone", &short, &[]).unwrap();
        add(&mut table, &costs, "none x", &short, &than).unwrap();
        add(&mut table, &costs, "vmm x", &long, &than).unwrap();
        let to_handler = |row: &&Row| row.unit == "modelled cycles" && !row.name.contains("back");
        let rows: Vec<&Row> = table.rows.iter().filter(to_handler).collect();
        let names: Vec<_> = rows.iter().map(|row| (row.group.as_deref(), &*row.name)).collect();
        let [a, b] = ["a (in-order)", "b (in-order)"];
        assert_eq!(
            names,
            [
                (Some("alone"), a),
                (Some("alone"), b),
                (Some("none x"), a),
                (Some("none x"), b),
                (Some("vmm x"), a)
            ],
            "the second CPU has no figure for VMRUN"
        );
        assert_eq!((rows[0].extra.len(), rows[2].extra["times_alone"]), (0, 1.0));
        assert_eq!((rows[4].median, rows[4].extra["times_alone"]), (80.0, 4.0));
    }
}
