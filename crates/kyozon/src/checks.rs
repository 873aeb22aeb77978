//! The status of the monitor's checks, as text and as JSON.

use crate::machine::{message, Now};
use crate::report::time;
use anyhow::Result;
use kyozon_abi::events::{CheckStatus, MAX_CHECKS};
use kyozon_channel::events::{printable, EventReader, Unusable};
use kyozon_channel::memory::Load;
use serde_json::{json, Value};

/// One check, with its times in nanoseconds.
#[derive(Clone, Debug)]
pub struct Check {
    /// Its name, printable.
    pub name: String,
    /// The counts that the monitor published.
    pub counts: CheckStatus,
    /// CPU time of the last complete pass, nanoseconds.
    pub pass_ns: u64,
    /// CPU time of all passes since the load, per cent of one CPU.
    pub cpu_percent: f64,
    /// Items (tasks, pages) that the last complete pass read in a second of the clock, with the time of all other code.
    pub items_per_second: f64,
    /// Duration of the last complete pass by the clock, nanoseconds.
    pub wall_ns: u64,
    /// Time since the end of the last complete pass, nanoseconds; `None` before the first.
    pub age_ns: Option<u64>,
}

impl Check {
    /// Percentage of the first pass that is done; 100 only once it is complete.
    pub fn learned_percent(&self) -> u64 {
        match self.counts.passes {
            0 => self.counts.learned.min(99),
            _ => 100,
        }
    }
}

/// Reads every check that has a name.
pub fn read(ring: impl Load, now: Now) -> Result<Vec<Check>> {
    let ring = match EventReader::new(ring) {
        Ok(ring) => ring,
        Err(Unusable::Version(0)) => return Ok(Vec::new()), // just unloaded
        Err(error) => return Err(error.into()),
    };
    let checks = (0..MAX_CHECKS).filter_map(|number| {
        let counts = ring.check(number)?;
        let name = message(&counts.name.map(|b| if b == 0 { 0 } else { printable(b) }))?;
        let since_load = now.tsc.saturating_sub(ring.loaded_tsc()).max(1);
        Some(Check {
            name,
            counts,
            items_per_second: match counts.wall_tsc {
                0 => 0.0,
                wall => counts.items as f64 * ring.tsc_khz() as f64 * 1000.0 / wall as f64,
            },
            wall_ns: nanoseconds(counts.wall_tsc, ring.tsc_khz()),
            pass_ns: nanoseconds(counts.pass_tsc, ring.tsc_khz()),
            cpu_percent: counts.total_tsc as f64 * 100.0 / since_load as f64,
            age_ns: (counts.passes > 0)
                .then(|| nanoseconds(now.tsc.saturating_sub(counts.last_tsc), ring.tsc_khz())),
        })
    });
    Ok(checks.collect())
}

/// Ticks of the time-stamp counter as nanoseconds; 0 if its rate is unknown.
pub(crate) fn nanoseconds(ticks: u64, khz: u64) -> u64 {
    let long = u128::from(ticks) * 1_000_000;
    long.checked_div(khz.into()).map_or(0, |ns| u64::try_from(ns).unwrap_or(u64::MAX))
}

/// A line for people.
pub fn text(check: &Check) -> String {
    let Check { name, counts, .. } = check;
    let Some(age) = check.age_ns else {
        return format!(
            "check    {name}: learning, {} % done, {:.2} % of a CPU",
            check.learned_percent(),
            check.cpu_percent
        );
    };
    let mut line = format!(
        "check    {name}: {} passes, {} findings, {} repairs, last pass {}, {:.2} % of a CPU, {:.1} s ago",
        counts.passes,
        counts.findings,
        counts.repairs,
        time(check.pass_ns),
        check.cpu_percent,
        age as f64 / 1e9
    );
    if counts.wall_tsc > 0 {
        let rate = match counts.item_bytes {
            0 => format!("{:.0} {name}", check.items_per_second),
            bytes => {
                format!("{:.1} MiB", check.items_per_second * bytes as f64 / f64::from(1 << 20))
            }
        };
        line +=
            &format!(", {rate} a second, {:.1} s from begin to end", check.wall_ns as f64 / 1e9);
    }
    for (count, what) in [
        (counts.open, "open"),
        (counts.unlisted, "unlisted"),
        (counts.unjudged, "not judged"),
        (counts.dropped, "suspects dropped"),
    ] {
        if count > 0 {
            line += &format!(", {count} {what}");
        }
    }
    line
}

/// The same for programs. Times are nanoseconds.
pub fn json(check: &Check) -> Value {
    json!({
        "name": check.name,
        "learned_percent": check.learned_percent(),
        "passes": check.counts.passes,
        "findings": check.counts.findings,
        "repairs": check.counts.repairs,
        "retries": check.counts.retries,
        "items": check.counts.items,
        "pass_ns": check.pass_ns,
        "wall_ns": check.wall_ns,
        "item_bytes": check.counts.item_bytes,
        "items_per_second": check.items_per_second,
        "open": check.counts.open,
        "unlisted": check.counts.unlisted,
        "unjudged": check.counts.unjudged,
        "restarts": check.counts.restarts,
        "dropped": check.counts.dropped,
        "cpu_percent": check.cpu_percent,
        "age_ns": check.age_ns,
    })
}

#[cfg(test)]
mod tests;
