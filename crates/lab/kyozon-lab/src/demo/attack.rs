//! Attacks, and what the monitor makes of them.

use super::Stage;
use anyhow::{Context, Result};
use serde_json::Value;

/// One way to tamper with Linux. `linux/attacks/README.md` has the words.
pub struct Attack {
    /// What `/proc/kyozon-attacks` is told; `PID` is a process's number.
    command: &'static str,
    /// For people.
    pub does: &'static str,
    /// What is so again when it is undone.
    pub undone: &'static str,
}

/// All that the demo shows.
pub const ATTACKS: [Attack; 4] = [
    Attack {
        command: "hide-list PID",
        does: "takes a process out of the kernel's list of processes",
        undone: "it is in the list again",
    },
    Attack {
        command: "hide-list-pid PID",
        does: "hides a process from every listing and makes it impossible to kill",
        undone: "it is listed and can be killed",
    },
    Attack {
        command: "patch-text",
        does: "overwrites a kernel function so that every user looks like root to programs",
        undone: "the function's own code is back",
    },
    Attack {
        command: "patch-rodata",
        does: "overwrites a pointer in read-only kernel data, so that another function is called",
        undone: "the pointer is what it was",
    },
];

/// Seconds of the guest within which an attack must be found.
const WITHIN: f64 = 1.0;

/// What came of one attack; times are seconds from the deed.
pub struct Seen {
    /// When it was found, and the monitor's line.
    pub found: Option<(f64, String)>,
    /// When the monitor said that it was undone.
    pub undone: Option<f64>,
    /// Linux is as it was before the attack.
    pub is_undone: bool,
    /// What `/proc/kyozon-attacks` said at the end.
    pub left: String,
}

impl Seen {
    /// Found, and soon enough.
    pub fn is_in_time(&self) -> bool {
        self.found.as_ref().is_some_and(|(after, _)| *after <= WITHIN)
    }
}

impl Attack {
    /// Attacks, with interrupts off for a second after the deed if `deaf`, and waits for what comes of it.
    pub fn run(&self, stage: &mut Stage, deaf: bool) -> Result<Seen> {
        let spin = if deaf { 1000 } else { 0 };
        let command = self.command.replace("PID", "$pid");
        // The process must run on unseen; when it is back, it can be killed like any other.
        let said = stage.ask(&format!(
            "sleep 100000 & pid=$!
             echo 'spin {spin}' >/proc/kyozon-attacks && echo \"{command}\" >/proc/kyozon-attacks || exit 1
             head -n 1 /proc/kyozon-attacks
             for i in $(seq 30); do grep -q present /proc/kyozon-attacks || break; sleep 0.1; done
             sleep 0.1
             head -n 1 /proc/kyozon-attacks
             echo undo >/proc/kyozon-attacks
             [ -d /proc/$pid ] && kill $pid && echo killed
             kyozon events --json"
        ))?;
        let mut lines = said.lines();
        let deed = lines.next().context("the attack's line")?;
        let left = lines.next().context("the attack's line, later")?.to_owned();
        let killed = lines.next() == Some("killed");
        let tsc = deed.split_whitespace().skip_while(|word| *word != "tsc").nth(1);
        let tsc: u64 = tsc.context("the attack's time")?.parse()?;
        let events: Vec<Value> = lines
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()
            .context("the monitor's lines")?;
        let after = |kind: &str| {
            let event = events.iter().find(|event| {
                event["kind"] == kind && event["tsc"].as_u64().is_some_and(|when| when >= tsc)
            })?;
            let when = event["tsc"].as_u64()?;
            Some(((when - tsc) as f64 / Stage::HZ, event["text"].as_str()?.to_owned()))
        };
        Ok(Seen {
            found: after("finding"),
            undone: after("repair").map(|(when, _)| when),
            is_undone: killed && left.contains(" gone "),
            left,
        })
    }
}
