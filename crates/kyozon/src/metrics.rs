//! A status in OpenMetrics' text format, for a node exporter's textfile collector or the like.

use crate::checks::Check;
use crate::colocation::Snapshot;
use crate::watch::{Monitor, State};
use kyozon_abi::device::STATE_RUNNING;
use std::fmt::Write;

/// Type of a metric family. The samples of a counter have names that end with `_total`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gauge,
    Counter,
}

/// A metric family with its samples: labels, which are empty or `{name="value"}`, and value.
struct Family {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    samples: Vec<(String, f64)>,
}

/// The output of `kyozon status --openmetrics`.
pub fn text(snapshot: &Option<Snapshot>) -> String {
    let running = |s: &&Snapshot| s.status.state == STATE_RUNNING;
    let is_running = snapshot.as_ref().filter(running).is_some();
    let mut out = String::new();
    let help = "1 if a cokernel runs, 0 if none is loaded or it was stopped";
    one("kyozon_running", Kind::Gauge, help, u64::from(is_running) as f64).write(&mut out);
    if let Some(snapshot) = snapshot {
        for family in cokernel(snapshot) {
            family.write(&mut out);
        }
        for family in snapshot.monitor.iter().flat_map(monitor) {
            family.write(&mut out);
        }
        for family in checks(&snapshot.checks) {
            family.write(&mut out);
        }
    }
    out + "# EOF\n"
}

fn one(name: &'static str, kind: Kind, help: &'static str, value: f64) -> Family {
    Family { name, kind, help, samples: vec![(String::new(), value)] }
}

fn cokernel(snapshot: &Snapshot) -> Vec<Family> {
    use Kind::{Counter, Gauge};
    let status = &snapshot.status;
    let count = |name, help, value: u64| one(name, Counter, help, value as f64);
    vec![
        count("kyozon_ticks", "ticks that reached the cokernel", status.ticks),
        count("kyozon_missed_ticks", "ticks that a later one counted", status.missed),
        count("kyozon_overruns", "ticks at which the cokernel was cut off", status.overruns),
        count("kyozon_wall_attempts", "attempts that the wall stopped", status.wall_findings),
        one(
            "kyozon_longest_stop_seconds",
            Gauge,
            "longest stop of Linux since the load",
            status.longest_ns as f64 / 1e9,
        ),
        one(
            "kyozon_reserve_bytes",
            Gauge,
            "memory that the cokernel takes from Linux",
            status.reserve_bytes as f64,
        ),
    ]
}

fn monitor(monitor: &Monitor) -> Vec<Family> {
    use Kind::{Counter, Gauge};
    let flag = |name, help, is: bool| one(name, Gauge, help, u64::from(is) as f64);
    let count = |name, help, value: u64| one(name, Counter, help, value as f64);
    let watching = monitor.state == State::Watching;
    vec![
        flag("kyozon_monitor_watching", "1 if every check watches", watching),
        flag("kyozon_monitor_blind", "1 if nobody watches", monitor.is_blind()),
        one(
            "kyozon_monitor_heartbeat_age_seconds",
            Gauge,
            "time since the monitor's last sign of life",
            monitor.beat_ns as f64 / 1e9,
        ),
        one(
            "kyozon_monitor_blind_seconds",
            Gauge,
            "time since the last sign of life of a monitor that is blind, 0 of one that is not",
            if monitor.is_blind() { monitor.beat_ns as f64 / 1e9 } else { 0.0 },
        ),
        count(
            "kyozon_event_records",
            "records that were written to the event ring",
            monitor.records,
        ),
        count(
            "kyozon_event_records_displaced",
            "records of the event ring that later ones took the place of",
            monitor.records.saturating_sub(monitor.ring_records),
        ),
        count("kyozon_monitor_restarts", "restarts of the monitor", monitor.counts.restarts),
        count("kyozon_monitor_slices", "slices that the monitor had", monitor.counts.slices),
        count(
            "kyozon_monitor_full_slices",
            "slices that the monitor used to their end",
            monitor.counts.full_slices,
        ),
    ]
}

/// A metric of a check: name, kind, help, value; `None` if there is none yet.
type Metric = (&'static str, Kind, &'static str, fn(&Check) -> Option<f64>);

const CHECKS: &[Metric] = &[
    ("kyozon_check_learned_ratio", Kind::Gauge, "part of the first pass that is done", |check| {
        Some(check.learned_percent() as f64 / 100.0)
    }),
    ("kyozon_check_passes", Kind::Counter, "complete passes", |check| {
        Some(check.counts.passes as f64)
    }),
    ("kyozon_check_findings", Kind::Counter, "findings", |check| {
        Some(check.counts.findings as f64)
    }),
    ("kyozon_check_repairs", Kind::Counter, "repairs", |check| Some(check.counts.repairs as f64)),
    ("kyozon_check_open_findings", Kind::Gauge, "findings that are open", |check| {
        Some(check.counts.open as f64)
    }),
    (
        "kyozon_check_unlisted_findings",
        Kind::Counter,
        "findings that found no place, or gave it to others",
        |check| Some(check.counts.unlisted as f64),
    ),
    ("kyozon_check_items", Kind::Gauge, "items that the last pass read", |check| {
        Some(check.counts.items as f64)
    }),
    ("kyozon_check_unjudged_items", Kind::Gauge, "items that the last pass left out", |check| {
        Some(check.counts.unjudged as f64)
    }),
    ("kyozon_check_dropped_suspects", Kind::Counter, "suspects that were not resolved", |check| {
        Some(check.counts.dropped as f64)
    }),
    ("kyozon_check_pass_seconds", Kind::Gauge, "CPU time of the last pass", |check| {
        Some(check.pass_ns as f64 / 1e9)
    }),
    ("kyozon_check_age_seconds", Kind::Gauge, "time since the last pass ended", |check| {
        check.age_ns.map(|ns| ns as f64 / 1e9)
    }),
    ("kyozon_check_cpu_ratio", Kind::Gauge, "part of a CPU since the load", |check| {
        Some(check.cpu_percent / 100.0)
    }),
];

fn checks(checks: &[Check]) -> Vec<Family> {
    let family = |&(name, kind, help, value): &Metric| {
        let sample = |check: &Check| {
            Some((format!("{{check=\"{}\"}}", escaped(&check.name)), value(check)?))
        };
        Family { name, kind, help, samples: checks.iter().filter_map(sample).collect() }
    };
    CHECKS.iter().map(family).filter(|family| !family.samples.is_empty()).collect()
}

/// A label's value. Names are printable.
fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"")
}

impl Family {
    fn write(&self, out: &mut String) {
        let Self { name, kind, help, samples } = self;
        let (kind, suffix) = match kind {
            Kind::Gauge => ("gauge", ""),
            Kind::Counter => ("counter", "_total"),
        };
        let mut line = |text: String| writeln!(out, "{text}").expect("a string takes all");
        line(format!("# TYPE {name} {kind}"));
        for unit in ["seconds", "bytes", "ratio"] {
            if name.ends_with(&format!("_{unit}")) {
                line(format!("# UNIT {name} {unit}"));
            }
        }
        line(format!("# HELP {name} {help}"));
        for (labels, value) in samples {
            line(format!("{name}{suffix}{labels} {value}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::status;
    use kyozon_abi::events::{CheckStatus, MonitorStatus};

    fn check(name: &str, passes: u64) -> Check {
        Check {
            name: name.into(),
            counts: CheckStatus { passes, findings: 2, learned: 40, ..CheckStatus::named(name) },
            pass_ns: 1_500_000,
            cpu_percent: 0.5,
            items_per_second: 0.0,
            wall_ns: 0,
            age_ns: (passes > 0).then_some(2_000_000_000),
        }
    }

    fn snapshot() -> Snapshot {
        let monitor = Monitor {
            state: State::Watching,
            counts: MonitorStatus::default(),
            slice_ns: 0,
            beat_ns: 250_000_000,
            records: 300,
            ring_records: 256,
        };
        let checks = vec![check("text", 3), check("a\"b", 0)];
        Snapshot { status: status(), checks, monitor: Some(monitor) }
    }

    #[test]
    fn samples_follow_their_descriptions() {
        let text = text(&Some(snapshot()));
        for line in [
            "# TYPE kyozon_running gauge\n# HELP kyozon_running 1 if a cokernel runs",
            "\nkyozon_running 1\n",
            "# TYPE kyozon_ticks counter\n# HELP kyozon_ticks ticks that reached the cokernel\nkyozon_ticks_total 12\n",
            "# UNIT kyozon_reserve_bytes bytes\n",
            "\nkyozon_monitor_watching 1\n",
            "\nkyozon_monitor_heartbeat_age_seconds 0.25\n",
            "\nkyozon_monitor_blind_seconds 0\n",
            "\nkyozon_event_records_total 300\n",
            "\nkyozon_event_records_displaced_total 44\n",
            "\nkyozon_check_learned_ratio{check=\"text\"} 1\nkyozon_check_learned_ratio{check=\"a\\\"b\"} 0.4\n",
            "\nkyozon_check_findings_total{check=\"text\"} 2\n",
            "\nkyozon_check_age_seconds{check=\"text\"} 2\n# TYPE kyozon_check_cpu_ratio gauge\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
        assert!(text.ends_with("\n# EOF\n"));
    }

    #[test]
    fn a_blind_monitor_says_for_how_long() {
        let mut snapshot = snapshot();
        let monitor = snapshot.monitor.as_mut().unwrap();
        (monitor.state, monitor.beat_ns) = (State::Blind("it ended".into()), 90_000_000_000);
        let text = text(&Some(snapshot));
        assert!(text.contains("\nkyozon_monitor_blind_seconds 90\n"), "{text}");
    }

    /// The format wants all lines of a family together, and each family once.
    #[test]
    fn families_are_not_mixed() {
        let text = text(&Some(snapshot()));
        let mut families = Vec::new();
        for line in text.lines().filter(|line| *line != "# EOF") {
            match line.strip_prefix("# TYPE ") {
                Some(rest) => families.push(rest.split(' ').next().unwrap()),
                None => {
                    let name = line.trim_start_matches("# UNIT ").trim_start_matches("# HELP ");
                    assert!(name.starts_with(families.last().unwrap()), "{line}");
                }
            }
        }
        let count = families.len();
        families.sort_unstable();
        families.dedup();
        assert_eq!((families.len(), count > 20), (count, true));
    }

    #[test]
    fn nothing_loaded_is_one_sample() {
        let text = text(&None);
        assert!(text.contains("\nkyozon_running 0\n# EOF\n"), "{text}");
    }
}
