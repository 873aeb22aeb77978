//! The attacks, and how the monitor reacts to each.

use super::Stage;
use anyhow::{Context, Result};
use serde_json::Value;

/// One way to tamper with Linux. `linux/attacks/README.md` lists the commands.
pub struct Attack {
    /// The command for `/proc/kyozon-attacks`; `PID` stands for a process's pid.
    command: &'static str,
    /// The attack in words.
    pub does: &'static str,
    /// The repaired state in words; `None` if the monitor reports and repairs nothing.
    pub undone: Option<&'static str>,
}

/// The attacks of the demo.
pub const ATTACKS: [Attack; 7] = [
    Attack {
        command: "hide-list PID",
        does: "takes a process out of the kernel's list of processes",
        undone: Some("it is in the list again"),
    },
    Attack {
        command: "hide-list-pid PID",
        does: "hides a process from every listing and makes it impossible to kill",
        undone: Some("it is listed and can be killed"),
    },
    Attack {
        command: "patch-text",
        does: "overwrites a kernel function so that every user looks like root to programs",
        undone: Some("the function's own code is back"),
    },
    Attack {
        command: "patch-rodata",
        does: "overwrites a pointer in read-only kernel data, so that another function is called",
        undone: Some("the pointer is what it was"),
    },
    Attack {
        command: "hide-module",
        does: "takes the attacker's module out of the list of modules",
        undone: None,
    },
    Attack {
        command: "hook-ftrace __x64_sys_getdents64",
        does: "lets a module see and change every listing of a directory",
        undone: None,
    },
    Attack {
        command: "hook-lstar",
        does: "makes every system call enter the kernel by way of a module",
        undone: None,
    },
];

/// Seconds of the guest's time within which the monitor must find an attack.
const WITHIN: f64 = 1.0;

/// The outcome of one attack; times are seconds after it.
pub struct Seen {
    /// When the monitor found it, and its line.
    pub found: Option<(f64, String)>,
    /// When the monitor reported the repair.
    pub undone: Option<f64>,
    /// Whether Linux is as it was before the attack.
    pub is_undone: bool,
    /// The state that `/proc/kyozon-attacks` showed at the end.
    pub left: String,
}

impl Seen {
    /// Whether the attack was found within [`WITHIN`].
    pub fn is_in_time(&self) -> bool {
        self.found.as_ref().is_some_and(|(after, _)| *after <= WITHIN)
    }
}

impl Attack {
    /// Attacks and waits for the monitor, until the attack is repaired, or else reported and, after it was taken back,
    /// gone. If `deaf`, Linux's interrupts are off for a second after the attack.
    pub fn run(&self, stage: &mut Stage, deaf: bool) -> Result<Seen> {
        let spin = if deaf { 1000 } else { 0 };
        let command = self.command.replace("PID", "$pid");
        let (stays, gone) = match self.undone {
            Some(_) => ("grep -q present /proc/kyozon-attacks", "true"),
            None => ("[ $(count FINDING) = $found ]", "! kyozon status | grep -q ' open'"),
        };
        // The hidden process must keep running; once it is back, it can be killed like any other.
        let output = stage.ask(&format!(
            "count() {{ kyozon events | grep -c \"$1\"; }}
             found=$(count FINDING)
             sleep 100000 & pid=$!
             echo 'spin {spin}' >/proc/kyozon-attacks && echo \"{command}\" >/proc/kyozon-attacks || exit 1
             head -n 1 /proc/kyozon-attacks
             for i in $(seq 30); do {stays} || break; sleep 0.1; done
             sleep 0.1
             head -n 1 /proc/kyozon-attacks
             echo undo >/proc/kyozon-attacks
             for i in $(seq 50); do {gone} && break; sleep 0.1; done
             [ -d /proc/$pid ] && kill $pid && echo killed
             kyozon events --json"
        ))?;
        let mut lines = output.lines();
        let start = lines.next().context("the attack's line")?;
        let left = lines.next().context("the attack's line, later")?.to_owned();
        let killed = lines.next() == Some("killed");
        let tsc = start.split_whitespace().skip_while(|word| *word != "tsc").nth(1);
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
