//! `kyozon inspect`: the monitor's checks on the memory of this machine, or on an image of one's.
//!
//! Everything about the kernel in an image comes from the image: its symbols, its types, the addresses at which it
//! lies. Only the kernel package's image, if it is at hand, says what code and read-only data should be.

mod bpf_ids;
mod code;
mod description;
pub(crate) mod dump;
mod information;
pub mod listing;
pub(crate) mod module_files;
mod subject;
mod symbols;
#[cfg(test)]
mod tests;

use crate::events::meaning::{severity, techniques, ATTACK_VERSION};
use crate::monitor::Code;
use anyhow::{Context, Result};
use dump::Dump;
use kyozon_abi::events::EVENT_FINDING;
use kyozon_monitor::check::{Budget, Check, Make, Step};
use kyozon_monitor::class::Class;
use kyozon_monitor::finding::Finding;
use kyozon_monitor::kernel::Kernel;
use kyozon_monitor::mappings::MappingCheck;
use kyozon_monitor::registry;
use kyozon_monitor::text::modules::ModuleTextCheck;
use module_files::Folder;
use serde_json::{json, Value};
use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::path::PathBuf;
use std::time::Instant;
use subject::Subject;

/// The exit status if something was found.
pub const FOUND: u8 = 5;
/// The exit status if nothing was found, but not everything was judged.
pub const UNJUDGED: u8 = 4;

/// Steps and passes that each check makes at least. After 50 steps, changes would be reported that Linux may be making.
const STEPS: u32 = 32;
const PASSES: u32 = 4;
/// Steps after which a check ends, whatever it has done, and times that it asks for the end of a step.
const MAX_STEPS: u32 = 4000;
const STEP_CALLS: u32 = 4096;
/// Milliseconds from one step to the next on the clock that the checks see on an image.
const STEP_MS: u64 = 10;
/// Steps after which a check of a kernel that runs ends although suspects wait for more looks.
const LIVE_STEPS: u32 = 400;

/// Why the check `name` is not run; `None` if it is.
fn not_run(name: &str, is_live: bool, has_files: bool) -> Option<&'static str> {
    match name {
        "liveness" if is_live => Some("not run: this command runs, so Linux does"),
        "liveness" => Some("not run: an image stands still"),
        "registers" | "gates" if is_live => Some("not run: a command cannot read registers"),
        "registers" | "gates" => Some("not run: an image has no registers"),
        "crash-kernel" => Some("not run: nothing tells what was loaded"),
        "module-text" if !has_files => Some("not run: the files of modules are not at hand"),
        _ => None,
    }
}

/// What a check saw.
#[derive(Debug)]
pub struct Outcome {
    name: &'static str,
    /// Why it was not run.
    not_run: Option<&'static str>,
    /// Number of items (tasks, pages) of its last pass; `None` if it has not completed the passes that it needs.
    items: Option<u64>,
    /// Number of items that could not be judged, of pages that the image lacks, of differences that Linux may have been
    /// making, and of suspects that only later looks could confirm.
    unjudged: u64,
    /// The findings, each with the changed code.
    findings: Vec<(Finding, Vec<String>)>,
}

/// The result for one kernel.
#[derive(Debug)]
pub struct Inspection {
    image: PathBuf,
    is_live: bool,
    format: &'static str,
    /// Number of ranges of memory, and bytes in them.
    extent: (usize, u64),
    release: String,
    code: Code,
    /// What the list of symbols hides or forges, in one line.
    warning: Option<String>,
    checks: Vec<Outcome>,
}

/// Where a kernel is, and what tells how it should be.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The image of a machine's memory; that of this machine if there is none.
    pub image: Option<PathBuf>,
    /// The kernel package's image, if the operator named one.
    pub package: Option<PathBuf>,
    /// The folder with the files of the kernel's modules, if the operator named one.
    pub modules: Option<PathBuf>,
}

/// Runs the checks on the kernel in `sources`.
///
/// # Errors
///
/// The file is no image of a machine that runs a known Linux, this machine's memory cannot be read, or a named source
/// is unusable.
pub fn inspect(sources: &Sources) -> Result<Inspection> {
    let subject = Subject::open(sources.image.as_deref(), sources.package.as_deref(), true)?;
    let (release, checks) = subject.with_kernel(|kernel| {
        let files = subject.module_files(kernel, sources.modules.as_deref())?;
        Ok((kernel.profile.release().to_owned(), run(&subject, kernel, files)?))
    })?;
    Ok(Inspection {
        format: subject.dump.format,
        extent: subject.dump.extent(),
        image: subject.path,
        is_live: subject.is_live,
        release,
        code: subject.code,
        warning: subject.warning,
        checks,
    })
}

/// Runs the checks until each has made enough passes.
fn run(
    subject: &Subject,
    kernel: &Kernel<'_, Dump>,
    files: Option<Folder>,
) -> Result<Vec<Outcome>> {
    let has_files = files.is_some();
    let mut checks = registry::make::<Dump>(kernel.profile, 0)?;
    if let Some(files) = files {
        let is_replaced =
            |check: &&mut Box<dyn Check<Dump>>| check.about().name == ModuleTextCheck::ABOUT.name;
        let check = checks.iter_mut().find(is_replaced).context("there is no check of modules")?;
        *check = Box::new(ModuleTextCheck::with_files(kernel.profile, Box::new(files))?);
    }
    let mut running: Vec<Running> =
        checks.into_iter().map(|check| Running::new(check, subject.is_live, has_files)).collect();
    let began = Instant::now();
    for step in 0..MAX_STEPS {
        let mut unfinished: Vec<_> =
            running.iter_mut().filter(|check| !check.is_done(step, subject.is_live)).collect();
        if unfinished.is_empty() {
            break;
        }
        match unfinished.iter().all(|check| check.rests()) {
            true => subject.look_again(),
            false => subject.pause(),
        }
        for check in &mut unfinished {
            let ms = match subject.is_live {
                true => began.elapsed().as_millis() as u64,
                false => u64::from(step + 1) * STEP_MS,
            };
            check.step(kernel, &mut Clock { ms, calls: 0 }, subject.is_live);
            check.lacking.extend(subject.dump.take_lacking());
        }
    }
    Ok(running.into_iter().map(|check| check.outcome(subject.is_live)).collect())
}

/// A check that is run.
struct Running {
    check: Box<dyn Check<Dump>>,
    outcome: Outcome,
    passes: u32,
    /// Whether its last step was one between passes, or between looks.
    rested: bool,
    /// What it deferred in its last step because Linux was changing it.
    retries: u64,
    /// The pages that it was to read and that are not there.
    lacking: BTreeSet<u64>,
    /// The lists that it could not walk to their ends while Linux was changing them.
    torn: BTreeSet<u64>,
}

impl Running {
    fn new(check: Box<dyn Check<Dump>>, is_live: bool, has_files: bool) -> Self {
        let name = check.about().name;
        let not_run = not_run(name, is_live, has_files);
        let outcome = Outcome { name, not_run, items: None, unjudged: 0, findings: Vec::new() };
        Self {
            check,
            outcome,
            passes: 0,
            rested: false,
            retries: 0,
            lacking: BTreeSet::new(),
            torn: BTreeSet::new(),
        }
    }

    fn is_done(&self, step: u32, is_live: bool) -> bool {
        // Of a kernel that runs, more looks confirm a suspect, or clear it.
        let waits = is_live && step < LIVE_STEPS && self.check.waiting() > 0;
        let is_enough = step >= STEPS && self.passes >= PASSES && !waits;
        self.outcome.not_run.is_some() || is_enough
    }

    /// Whether it only counts the steps until its next pass, and no suspect needs the time in between. The passes over
    /// the page tables are far apart to save time beside Linux. Of other checks, not all tell that they have suspects.
    fn rests(&self) -> bool {
        let is_known = self.outcome.name == MappingCheck::ABOUT.name;
        is_known && self.rested && self.check.waiting() == 0
    }

    fn step(&mut self, kernel: &Kernel<'_, Dump>, clock: &mut Clock, is_live: bool) {
        let Self { check, outcome, passes, rested, retries, torn, .. } = self;
        *retries = 0;
        // Beside Linux, the monitor walks lists while this CPU's Linux stands still; this command does not.
        let mut found = |finding: Finding| match finding.class {
            Class::ProcessListDamaged if is_live => drop(torn.insert(finding.address)),
            _ => outcome.add(kernel, finding),
        };
        let step = check.step(kernel, clock, &mut found, retries);
        *rested = step == Step::Rests;
        if let Step::Done(items) = step {
            *passes += 1;
            outcome.items = (*passes >= PASSES).then_some(items);
        }
    }

    fn outcome(self, is_live: bool) -> Outcome {
        let coverage = self.check.coverage();
        let mut unjudged = coverage.unjudged + coverage.dropped + self.check.waiting();
        unjudged += self.torn.len() as u64;
        // On a machine that runs, the next look sees what Linux was changing, or freeing.
        if !is_live {
            unjudged += self.retries + self.lacking.len() as u64;
        }
        Outcome { unjudged, ..self.outcome }
    }
}

/// A long slice.
struct Clock {
    ms: u64,
    calls: u32,
}

impl Budget for Clock {
    fn spent(&mut self) -> bool {
        self.calls += 1;
        self.calls > STEP_CALLS
    }
    fn clock_ms(&mut self) -> u64 {
        self.ms
    }
    fn is_whole(&self) -> bool {
        true
    }
    fn half_spent(&mut self) -> bool {
        self.calls > STEP_CALLS / 2
    }
}

impl Outcome {
    /// Why the check says nothing; `None` if it does.
    fn silence(&self) -> Option<&'static str> {
        match self.items {
            None if self.not_run.is_some() => self.not_run,
            None => Some("not complete: the memory that it walks has no end"),
            // A machine may have no BPF program.
            Some(0) if self.name != "bpf" || self.unjudged > 0 => Some("nothing to look at"),
            Some(_) => None,
        }
    }

    /// Whether it could not judge all that the memory shows.
    fn is_limited(&self) -> bool {
        self.not_run.is_none() && (self.silence().is_some() || self.unjudged > 0)
    }

    /// Adds a finding that is not there yet: a check reports what stands again and again.
    fn add(&mut self, kernel: &Kernel<'_, Dump>, finding: Finding) {
        let is_same = |(known, _): &(Finding, _)| {
            (&known.what, known.address, &known.symbol)
                == (&finding.what, finding.address, &finding.symbol)
        };
        if !finding.restored && !self.findings.iter().any(is_same) {
            let code = code::instructions(kernel, &finding);
            self.findings.push((finding, code));
        }
    }
}

impl Inspection {
    /// The findings with the changed code, and their checks' names.
    fn findings(&self) -> impl Iterator<Item = (&'static str, &(Finding, Vec<String>))> {
        self.checks.iter().flat_map(|check| check.findings.iter().map(|it| (check.name, it)))
    }

    /// Whether there are modules, and no files to compare them with.
    fn lacks_files(&self) -> bool {
        let named = |name: &str| self.checks.iter().find(|check| check.name == name);
        let has_modules = named("modules").is_some_and(|check| check.items.unwrap_or(0) > 0);
        has_modules && named(ModuleTextCheck::ABOUT.name).is_some_and(|it| it.not_run.is_some())
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        let is_limited = matches!(self.code, Code::AsFound(_))
            || self.lacks_files()
            || self.checks.iter().any(Outcome::is_limited);
        match self.findings().next() {
            Some(_) => FOUND,
            None if is_limited => UNJUDGED,
            None => 0,
        }
    }

    /// What the list of symbols hides or forges, in one line.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// The result as JSON.
    pub fn json(&self) -> Value {
        let checks = self.checks.iter().map(|check| {
            json!({
                "name": check.name,
                "items": check.items,
                "unjudged": check.unjudged,
                "note": check.silence(),
                "findings": check.findings.len(),
            })
        });
        let findings = self.findings().map(|(check, (it, code))| {
            let techniques = techniques(it.class);
            json!({
                "check": check,
                "class": it.class.name(),
                "severity": severity(EVENT_FINDING, Some(it.class)).name(),
                "attack": { "version": ATTACK_VERSION, "techniques": techniques },
                "what": it.what,
                "address": (it.address != 0).then(|| format!("{:#x}", it.address)),
                "symbol": it.symbol,
                "owner": it.owner,
                "expected": it.expected,
                "found": it.found,
                "code": code,
                "text": it.line(),
            })
        });
        let (package, reason) = match &self.code {
            Code::Package(path) => (Some(path.display().to_string()), None),
            Code::AsFound(reason) => (None, Some(reason)),
        };
        json!({
            "image": self.image.display().to_string(),
            "format": self.format,
            "bytes": self.extent.1,
            "release": self.release,
            "package": package,
            "no_package": reason,
            "warning": self.warning,
            "checks": checks.collect::<Vec<_>>(),
            "findings": findings.collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ranges, bytes) = self.extent;
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let mib = bytes as f64 / f64::from(1 << 20);
        let image = self.image.display();
        let (title, format) = match self.is_live {
            true => ("memory", "this machine's"),
            false => ("image", self.format),
        };
        writeln!(
            f,
            "{title:8} {image}: {format}, {mib:.1} MiB in {ranges} range{}",
            plural(ranges)
        )?;
        writeln!(f, "kernel   Linux {}", self.release)?;
        match &self.code {
            Code::Package(path) => {
                writeln!(
                    f,
                    "code     compared with the kernel package's image, {}",
                    path.display()
                )?;
            }
            Code::AsFound(reason) => {
                writeln!(f, "code     not compared with the kernel package's image ({reason}): changes of most code are not seen")?;
            }
        }
        for check in &self.checks {
            let mut line = String::new();
            let (found, unjudged) = (check.findings.len(), check.unjudged);
            match (check.silence(), check.items) {
                (None, Some(items)) => {
                    write!(line, "{items} items, {found} finding{}", plural(found))?
                }
                (silence, _) => line.push_str(silence.unwrap_or_default()),
            }
            if unjudged > 0 && check.silence().is_none() {
                write!(line, ", {unjudged} not judged")?;
            }
            writeln!(f, "check    {}: {line}", check.name)?;
        }
        for (_, (finding, code)) in self.findings() {
            writeln!(f, "FINDING  {}", finding.line())?;
            if !code.is_empty() {
                writeln!(f, "code     {}", code.join("; "))?;
            }
        }
        let count = self.findings().count();
        match count {
            0 if self.status() != 0 => {
                write!(f, "verdict: nothing found, but not everything was judged")
            }
            0 => write!(f, "verdict: nothing found"),
            count => write!(f, "verdict: {count} finding{}", plural(count)),
        }
    }
}
