//! A status as text and as JSON.

use crate::checks;
use crate::cli::Watch;
use crate::colocation::Snapshot;
use crate::machine::message;
use crate::monitor::Code;
use crate::watch::{self, Monitor};
use anyhow::Result;
use kyozon_abi::{device, device::Status, layer};
use serde_json::json;
use std::process::ExitCode;

/// The line printed after a load.
pub fn loaded(status: &Status, watch: Watch) -> String {
    let what = match watch {
        Watch::Off => "a cokernel",
        Watch::Report => "the monitor, which reports but does not repair,",
        Watch::Repair => "the monitor, which reports and repairs,",
        Watch::Policy => "the monitor, which reports and follows the policy,",
    };
    format!(
        "loaded: {what} on CPU {} with {} ticks per second from {}, {} of memory, {}",
        status.cpu,
        status.tick_hz,
        source(status),
        bytes(status.reserve_bytes),
        isolation(status),
    )
}

/// The second line printed after the monitor was loaded.
pub fn code(code: &Code) -> String {
    match code {
        Code::Package(image) => format!("the kernel's code is compared with {}", image.display()),
        Code::AsFound(why) => format!("the kernel's code is trusted as found: {why}"),
    }
}

/// The lines of `kyozon status`.
pub fn text(snapshot: &Option<Snapshot>) -> String {
    let Some(snapshot) = snapshot else {
        return "nothing is loaded".into();
    };
    let mut lines = head(snapshot);
    lines.extend(snapshot.checks.iter().map(checks::text));
    lines.extend(message(&snapshot.status.message).map(|line| format!("reason   {line}")));
    lines.join("\n")
}

/// The same without the checks.
pub(crate) fn head(Snapshot { status, monitor, .. }: &Snapshot) -> Vec<String> {
    let mut lines = vec![
        format!("state    {} on CPU {}, {}", state(status), status.cpu, isolation(status)),
        format!(
            "ticks    {} at {} Hz from {}, {} missed",
            status.ticks,
            status.tick_hz,
            source(status),
            status.missed
        ),
        format!(
            "stops    longest {}, 99 % below {}, budget {} us, cut off {} times",
            time(status.longest_ns),
            time(status.p99_ns),
            status.budget_us,
            status.overruns
        ),
        format!("memory   {}", bytes(status.reserve_bytes)),
    ];
    if status.differences > 0 {
        lines.push(format!(
            "damage   {} parts of Linux's state were not restored",
            status.differences
        ));
    }
    lines.extend(wall_lines(status));
    lines.extend(monitor.iter().map(watch::text));
    lines
}

/// The output of `kyozon status --json`. Times are in nanoseconds, memory in bytes.
pub fn json(snapshot: &Option<Snapshot>) -> Result<String> {
    let value = match snapshot {
        None => json!({ "state": "empty" }),
        Some(Snapshot { status, checks, monitor }) => json!({
            "state": state(status),
            "isolation": mode(status),
            "cpu": status.cpu,
            "tick_hz": status.tick_hz,
            "tick_source": source(status),
            "ticks": status.ticks,
            "missed": status.missed,
            "budget_us": status.budget_us,
            "overruns": status.overruns,
            "longest_ns": status.longest_ns,
            "p99_ns": status.p99_ns,
            "reserve_bytes": status.reserve_bytes,
            "differences": status.differences,
            "message": message(&status.message),
            "monitor": watch::json(monitor),
            "checks": checks.iter().map(checks::json).collect::<Vec<_>>(),
            "wall": wall(status),
        }),
    };
    Ok(serde_json::to_string_pretty(&value)?)
}

/// Names of Linux's exit reasons, in the order of `abi::vmm`'s `EXIT_*`.
const EXITS: [&str; 14] = [
    "tick", "nmi", "nmi_end", "hidden", "write", "step", "map", "register", "call", "svm", "init",
    "park", "other", "watch",
];

/// The lines about nested paging; none in mode none.
fn wall_lines(status: &Status) -> Vec<String> {
    if status.mode != layer::MODE_VMM {
        return Vec::new();
    }
    let exits: Vec<String> = EXITS
        .iter()
        .zip(status.exits)
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let lock = match status.locked {
        0 => "kyozon.ko has the key in its memory",
        _ => "unload needs the key file of the load",
    };
    vec![
        format!("exits    {}", exits.join(", ")),
        format!(
            "wall     {} attempts stopped, {} of nested tables",
            status.wall_findings,
            bytes(status.nested_bytes)
        ),
        format!("key      {lock}"),
        format!(
            "enforced memory, the tick's timer, the registers of isolation, on every CPU{}",
            if status.iommu == device::IOMMU_DRIVEN { "; memory against DMA" } else { "" }
        ),
        format!(
            "not enforced: {}system management mode, firmware",
            dma_gap(status).map_or(String::new(), |why| format!("DMA ({why}), "))
        ),
    ]
}

/// Why devices can reach the cokernel's memory; `None` if they cannot.
fn dma_gap(status: &Status) -> Option<&'static str> {
    match status.iommu {
        device::IOMMU_NONE => Some("this machine has no IOMMU"),
        device::IOMMU_LINUX => Some("Linux uses the IOMMU"),
        device::IOMMU_DRIVEN => None,
        _ => Some("this kind of IOMMU is not supported"),
    }
}

/// The JSON object about nested paging; null in mode none.
fn wall(status: &Status) -> serde_json::Value {
    if status.mode != layer::MODE_VMM {
        return serde_json::Value::Null;
    }
    let exits: serde_json::Map<_, _> = EXITS
        .iter()
        .zip(status.exits)
        .map(|(name, count)| ((*name).into(), count.into()))
        .collect();
    json!({
        "exits": exits,
        "stopped": status.wall_findings,
        "locked": status.locked != 0,
        "nested_bytes": status.nested_bytes,
        "enforced": with_dma(&["memory", "timer", "registers"], dma_gap(status).is_none().then(|| "dma".into())),
        "not_enforced": with_dma(&["system management mode", "firmware"], dma_gap(status).map(|why| format!("dma: {why}"))),
    })
}

fn with_dma(words: &[&str], dma: Option<String>) -> Vec<String> {
    words.iter().map(|word| (*word).into()).chain(dma).collect()
}

/// Exit status: 0 a cokernel runs, 3 nothing is loaded, 4 it was stopped or its monitor is blind.
pub fn exit_code(snapshot: &Option<Snapshot>) -> ExitCode {
    match snapshot {
        None => ExitCode::from(3),
        Some(snapshot)
            if snapshot.status.state == device::STATE_RUNNING
                && !snapshot.monitor.as_ref().is_some_and(Monitor::is_blind) =>
        {
            ExitCode::SUCCESS
        }
        Some(_) => ExitCode::from(4),
    }
}

fn state(status: &Status) -> &'static str {
    match status.state {
        device::STATE_RUNNING => "running",
        device::STATE_STOPPED => "stopped",
        _ => "empty",
    }
}

fn mode(status: &Status) -> &'static str {
    if status.mode == layer::MODE_VMM {
        "vmm"
    } else {
        "none"
    }
}

fn isolation(status: &Status) -> &'static str {
    if status.mode == layer::MODE_VMM {
        "behind nested paging"
    } else {
        "without isolation: Linux can reach its memory"
    }
}

fn source(status: &Status) -> &'static str {
    match status.tick_source {
        device::TICK_HPET_MSI => "HPET (MSI)",
        device::TICK_HPET_IOAPIC => "HPET (IO-APIC)",
        device::TICK_RTC => "RTC",
        _ => "no source",
    }
}

fn bytes(number: u64) -> String {
    match number {
        0..0x10_0000 => format!("{} KiB", number >> 10),
        _ => format!("{:.1} MiB", number as f64 / f64::from(1 << 20)),
    }
}

pub(crate) fn time(nanoseconds: u64) -> String {
    format!("{:.1} us", nanoseconds as f64 / 1000.0)
}

#[cfg(test)]
pub(crate) mod tests;
