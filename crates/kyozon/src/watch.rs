//! The monitor as a whole: whether it watches, and if not, why.

use crate::checks::{nanoseconds, Check};
use crate::machine::{message, Now};
use kyozon_abi::device::{Status, STATE_RUNNING};
use kyozon_abi::events::{
    MonitorStatus, CHECK_LEARNING, MONITOR_ENDED, MONITOR_NONE, MONITOR_STARTING,
};
use kyozon_channel::events::{printable, EventReader, Unusable};
use kyozon_channel::memory::Load;
use serde_json::{json, Value};

/// What the monitor does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It reads its profile.
    Starting,
    /// These checks still learn what they will compare with.
    Learning(Vec<String>),
    /// Every check watches.
    Watching,
    /// Nobody watches, for this reason.
    Blind(String),
}

/// The monitor.
#[derive(Clone, Debug)]
pub struct Monitor {
    /// What it does.
    pub state: State,
    /// The counts that it published.
    pub counts: MonitorStatus,
    /// Length of a slice now, nanoseconds.
    pub slice_ns: u64,
    /// Time since its heartbeat, nanoseconds.
    pub beat_ns: u64,
    /// Records that were written to the event ring since the load, and how many it holds.
    pub records: u64,
    /// See [`Monitor::records`].
    pub ring_records: u64,
}

/// Reads the status of the monitor; `None` if the cokernel is another one.
pub fn read(ring: impl Load, now: Now, status: &Status, checks: &[Check]) -> Option<Monitor> {
    let ring = match EventReader::new(ring) {
        Ok(ring) => ring,
        Err(Unusable::Version(_) | Unusable::Records(_)) => return None,
    };
    let counts = ring.monitor()?;
    let since = |tsc: u64| nanoseconds(now.tsc.saturating_sub(tsc), ring.tsc_khz());
    (counts.state != MONITOR_NONE).then(|| Monitor {
        state: state(&counts, since(counts.beat_tsc), now, status, checks),
        counts,
        slice_ns: nanoseconds(counts.slice_tsc, ring.tsc_khz()),
        beat_ns: since(counts.beat_tsc),
        records: ring.end(),
        ring_records: ring.records(),
    })
}

fn state(
    counts: &MonitorStatus,
    beat_ns: u64,
    now: Now,
    status: &Status,
    checks: &[Check],
) -> State {
    if status.state != STATE_RUNNING {
        return State::Blind("the cokernel was stopped".into());
    }
    if counts.state == MONITOR_ENDED {
        let reason = message(&counts.reason.map(|b| if b == 0 { 0 } else { printable(b) }));
        return State::Blind(reason.unwrap_or_else(|| "it ended without a reason".into()));
    }
    let late = now.tsc.saturating_sub(counts.beat_tsc) > counts.patience_tsc;
    if counts.patience_tsc > 0 && late {
        let seconds = beat_ns / 1_000_000_000;
        return State::Blind(match counts.state {
            MONITOR_STARTING => format!("it has not begun to watch for {seconds} s"),
            _ => format!("it has not progressed for {seconds} s"),
        });
    }
    if counts.state == MONITOR_STARTING {
        return State::Starting;
    }
    let learning: Vec<_> = checks
        .iter()
        .filter(|check| check.counts.state == CHECK_LEARNING)
        .map(|check| check.name.clone())
        .collect();
    match learning.is_empty() {
        true => State::Watching,
        false => State::Learning(learning),
    }
}

impl Monitor {
    /// Whether nobody watches.
    pub fn is_blind(&self) -> bool {
        matches!(self.state, State::Blind(_))
    }

    fn word(&self) -> &'static str {
        match self.state {
            State::Starting => "starting",
            State::Learning(_) => "learning",
            State::Watching => "watching",
            State::Blind(_) => "blind",
        }
    }

    fn reason(&self) -> Option<&str> {
        match &self.state {
            State::Blind(reason) => Some(reason),
            _ => None,
        }
    }
}

/// A line for people.
pub fn text(monitor: &Monitor) -> String {
    let mut line = match &monitor.state {
        State::Learning(checks) => format!("monitor  learning: {}", checks.join(", ")),
        State::Blind(reason) => format!("monitor  blind: {reason}"),
        _ => format!("monitor  {}", monitor.word()),
    };
    let MonitorStatus { slices, full_slices, restarts, .. } = monitor.counts;
    if slices > 0 {
        line += &format!("; {full_slices} of {slices} slices used to their end");
    }
    if restarts > 0 {
        line += &format!("; started again {restarts} times");
    }
    line
}

/// The same for programs. Times are nanoseconds.
pub fn json(monitor: &Option<Monitor>) -> Value {
    let Some(monitor) = monitor else { return Value::Null };
    json!({
        "state": monitor.word(),
        "reason": monitor.reason(),
        "restarts": monitor.counts.restarts,
        "slices": monitor.counts.slices,
        "full_slices": monitor.counts.full_slices,
        "slice_ns": monitor.slice_ns,
        "beat_age_ns": monitor.beat_ns,
    })
}

#[cfg(test)]
mod tests;
