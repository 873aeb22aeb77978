//! The contents of a `test.toml`.

use crate::guest::Output;
use crate::kernels::SERIES;
use crate::process;
use crate::spec::Program;
use anyhow::{bail, ensure, Context, Result};
use regex::Regex;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The whole file; docs/laboratory.md explains every key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Description {
    pub(super) about: String,
    #[serde(default)]
    pub(super) needs: Vec<Need>,
    #[serde(default)]
    pub(super) timing: bool,
    #[serde(default = "default_seconds")]
    pub(super) seconds: u32,
    pub(super) guest: Option<GuestPart>,
    #[serde(default)]
    pub(super) step: Vec<Step>,
    #[serde(default)]
    pub(super) host: Vec<HostStep>,
}

/// What the machine must have, or the test is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Need {
    Root,
    Kvm,
    Tun,
    Fuse,
    Bochs,
    Redis,
    RedisServer,
    RustMusl,
    RustWasi,
    Wasi,
    Nightly,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct GuestPart {
    pub(super) emulator: Program,
    pub(super) kernels: Vec<String>,
    pub(super) nightly_kernels: Vec<String>,
    pub(super) flavour: String,
    pub(super) smp: Vec<u32>,
    pub(super) mem: u32,
    pub(super) machine: Option<String>,
    pub(super) cpu: Option<String>,
    pub(super) accel: Option<String>,
    pub(super) append: String,
    pub(super) devices: Vec<String>,
    pub(super) modules: Vec<String>,
    pub(super) build: Vec<String>,
    pub(super) programs: Vec<PathBuf>,
    pub(super) typed: Vec<PathBuf>,
    pub(super) wasi: Vec<String>,
    pub(super) suite: Vec<String>,
    pub(super) kyozon: bool,
    pub(super) isolation: Option<Vec<Isolation>>,
    pub(super) crash_kernel: bool,
    pub(super) kernel_image: bool,
    pub(super) files: BTreeMap<String, PathBuf>,
    pub(super) allow: Vec<String>,
    pub(super) cokernel: Vec<String>,
    pub(super) deterministic: bool,
    pub(super) one_host_cpu: bool,
    pub(super) boot_limit: Option<u64>,
    pub(super) resets: bool,
}

/// What stands between the cokernel and Linux.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Isolation {
    None,
    Vmm,
}

impl Description {
    /// Reads and validates a `test.toml`.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let description: Self =
            toml::from_str(&text).with_context(|| path.display().to_string())?;
        description.validate().with_context(|| path.display().to_string())?;
        Ok(description)
    }

    fn validate(&self) -> Result<()> {
        let Self { guest, step, host, .. } = self;
        ensure!(guest.is_some() || step.is_empty(), "steps need a [guest]");
        ensure!(!step.is_empty() || !host.is_empty(), "there is neither a [[step]] nor a [[host]]");
        let Some(guest) = guest else { return Ok(()) };
        ensure!(!guest.kernels.is_empty() && !guest.smp.is_empty(), "kernels or smp is empty");
        let live_only = |step: &Step| step.restarts || !step.monitor.is_empty();
        ensure!(
            !guest.deterministic || !step.iter().any(live_only),
            "a deterministic run can have neither monitor nor restarts"
        );
        Ok(())
    }
}

impl GuestPart {
    /// Each isolation, with whether only the nightly run takes it.
    pub(super) fn isolations(&self) -> Vec<(Isolation, bool)> {
        match &self.isolation {
            Some(list) => list.iter().map(|isolation| (*isolation, false)).collect(),
            None if self.kyozon => vec![(Isolation::None, false), (Isolation::Vmm, true)],
            None => vec![(Isolation::None, false)],
        }
    }
}

impl Default for GuestPart {
    fn default() -> Self {
        Self {
            emulator: Program::Qemu,
            kernels: SERIES.map(String::from).into(),
            nightly_kernels: Vec::new(),
            flavour: "cloud".into(),
            smp: vec![1],
            mem: 512,
            machine: None,
            cpu: None,
            accel: None,
            append: String::new(),
            devices: Vec::new(),
            modules: Vec::new(),
            build: Vec::new(),
            programs: Vec::new(),
            typed: Vec::new(),
            wasi: Vec::new(),
            suite: Vec::new(),
            kyozon: false,
            isolation: None,
            crash_kernel: false,
            resets: false,
            kernel_image: false,
            files: BTreeMap::new(),
            allow: Vec::new(),
            cokernel: Vec::new(),
            deterministic: false,
            one_host_cpu: false,
            boot_limit: None,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    pub(super) run: String,
    /// Commands for QEMU's monitor, given one second after the script has started.
    #[serde(default)]
    pub(super) monitor: Vec<String>,
    /// The script does not end: another kernel takes over, and its agent must report.
    #[serde(default)]
    pub(super) restarts: bool,
    #[serde(flatten)]
    pub(super) expect: Expect,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostStep {
    pub(super) run: String,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    #[serde(flatten)]
    pub(super) expect: Expect,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Expect {
    #[serde(default)]
    pub(super) status: i32,
    pub(super) stdout: Option<String>,
    pub(super) stderr: Option<String>,
    /// Standard error has this many lines.
    pub(super) stderr_lines: Option<usize>,
    #[serde(default = "default_limit")]
    pub(super) limit: u64,
}

fn default_seconds() -> u32 {
    20
}

/// The last two lines that are not blank: the last one may only count a guest's instructions.
fn last_lines(text: &str) -> Option<String> {
    let mut lines: Vec<&str> =
        text.lines().rev().map(str::trim).filter(|line| !line.is_empty()).take(2).collect();
    lines.reverse();
    (!lines.is_empty()).then(|| lines.join(" / "))
}

fn default_limit() -> u64 {
    60
}

impl Expect {
    /// Holds the output of the script to these expectations.
    pub(super) fn check(&self, script: &str, output: &Output) -> Result<()> {
        let what = script.lines().next().unwrap_or_default();
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        if output.timed_out {
            bail!("{what:?} did not end within {} s", self.limit);
        }
        // Where tests run, the last line says only that one failed.
        let reason = || {
            process::panic_message(&stdout)
                .or_else(|| last_lines(&stderr))
                .or_else(|| last_lines(&stdout))
                .unwrap_or_else(|| "no output".to_owned())
        };
        ensure!(
            output.status == self.status,
            "{what:?} ended with status {}, not {}: {}",
            output.status,
            self.status,
            reason()
        );
        for (name, pattern, text) in
            [("stdout", &self.stdout, &stdout), ("stderr", &self.stderr, &stderr)]
        {
            if let Some(pattern) = pattern {
                let found = Regex::new(pattern)
                    .with_context(|| format!("{name} = {pattern:?}"))?
                    .is_match(text);
                let said = last_lines(&stderr)
                    .filter(|_| name == "stdout")
                    .map_or_else(String::new, |lines| format!("; last lines of stderr: {lines}"));
                ensure!(found, "{what:?}: {name} has no match for {pattern:?}: {text:?}{said}");
            }
        }
        if let Some(lines) = self.stderr_lines {
            ensure!(
                stderr.lines().count() == lines,
                "{what:?}: {} lines on stderr, not {lines}: {stderr:?}",
                stderr.lines().count()
            );
        }
        Ok(())
    }
}
