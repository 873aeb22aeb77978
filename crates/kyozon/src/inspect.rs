//! `kyozon inspect`: the monitor's checks on an image of a machine's memory.
//!
//! Everything about the kernel comes from the image: its symbols, its types, the addresses at which it lies. Only the
//! kernel package's image, if it is at hand, says what code and read-only data should be.

pub(crate) mod dump;
mod information;
mod symbols;
#[cfg(test)]
mod tests;

use crate::events::meaning::{severity, techniques, ATTACK_VERSION};
use crate::machine::{Machine, ThisMachine};
use crate::monitor::{Code, Package};
use anyhow::{anyhow, bail, ensure, Context, Result};
use dump::Dump;
use information::Information;
use kyozon_abi::events::EVENT_FINDING;
use kyozon_monitor::check::{Budget, Step};
use kyozon_monitor::finding::Finding;
use kyozon_monitor::kernel::Kernel;
use kyozon_monitor::memory::{KernelMemory, PAGE_BYTES};
use kyozon_monitor::profile::btf::Btf;
use kyozon_monitor::profile::build::{build, Sources};
use kyozon_monitor::profile::Profile;
use kyozon_monitor::registry;
use serde_json::{json, Value};
use std::collections::HashSet;
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use symbols::Tables;

/// The exit status if something was found.
pub const FOUND: u8 = 5;
/// The exit status if nothing was found, but not everything was judged.
pub const UNJUDGED: u8 = 4;

/// Maximum number of pages that are tried as the kernel's description of itself.
const MAX_CANDIDATES: usize = 64;
/// Maximum bytes of a kernel's description of its types, and of its notes.
const MAX_PART: u64 = 64 << 20;
/// Steps and passes that each check makes at least. After 50 steps, changes would be reported that Linux may be making.
const STEPS: u32 = 32;
const PASSES: u32 = 4;
/// Steps after which a check ends, whatever it has done, and times that it asks for the end of a step.
const MAX_STEPS: u32 = 4000;
const STEP_CALLS: u32 = 4096;
/// Milliseconds of the clock that the checks see, for each step.
const STEP_MS: u64 = 10;

/// Why the check `name` is not run on an image; `None` if it is.
fn not_run(name: &str) -> Option<&'static str> {
    match name {
        "liveness" => Some("not run: an image stands still"),
        "registers" | "gates" => Some("not run: an image has no registers"),
        _ => None,
    }
}

/// What a check saw.
#[derive(Debug)]
pub struct Outcome {
    name: &'static str,
    /// Number of items (tasks, pages) of its last pass; `None` if it has not completed the passes that it needs.
    items: Option<u64>,
    /// Number of items that could not be judged, of pages that the image lacks, of differences that Linux may have been
    /// making, and of suspects that only later looks could confirm.
    unjudged: u64,
    findings: Vec<Finding>,
}

/// The result for one image.
#[derive(Debug)]
pub struct Inspection {
    image: PathBuf,
    format: &'static str,
    /// Number of ranges of memory, and bytes in them.
    extent: (usize, u64),
    release: String,
    code: Code,
    /// What the image's list of symbols hides or forges, in one line.
    warning: Option<String>,
    checks: Vec<Outcome>,
}

/// Runs the checks on the image at `path`. `package` is the kernel's own image if the operator named one.
///
/// # Errors
///
/// The file is no image of a machine that runs a known Linux, or the named `package` is unusable.
pub fn inspect(path: &Path, package: Option<&Path>) -> Result<Inspection> {
    let dump = Dump::open(path)?;
    let shown = || path.display().to_string();
    let description = Description::find(&dump).with_context(shown)?;
    let (profile, code, warning) = description.profile(package).with_context(shown)?;
    let profile = Profile::decode(&profile).with_context(shown)?;
    let kernel = Kernel::new(&profile, &dump);
    dump.take_lacking();
    let mut checks = Vec::new();
    for mut check in registry::make::<Dump>(&profile, 0)? {
        let name = check.about().name;
        let mut outcome = Outcome { name, items: None, unjudged: 0, findings: Vec::new() };
        let (mut passes, mut clock) = (0, Clock { ms: 0, calls: 0 });
        for step in 0..MAX_STEPS {
            if not_run(name).is_some() || step >= STEPS && passes >= PASSES {
                break;
            }
            clock = Clock { ms: clock.ms + STEP_MS, calls: 0 };
            let mut found = |finding: Finding| outcome.add(finding);
            let mut retries = 0;
            if let Step::Done(items) = check.step(&kernel, &mut clock, &mut found, &mut retries) {
                passes += 1;
                outcome.items = (passes >= PASSES).then_some(items);
            }
            outcome.unjudged = retries;
        }
        let coverage = check.coverage();
        outcome.unjudged += coverage.unjudged + coverage.dropped + check.waiting();
        outcome.unjudged += dump.take_lacking();
        checks.push(outcome);
    }
    Ok(Inspection {
        image: path.to_owned(),
        format: dump.format,
        extent: dump.extent(),
        release: profile.release().to_owned(),
        code,
        warning,
        checks,
    })
}

/// A long slice, on a clock that counts slices.
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
    fn half_spent(&mut self) -> bool {
        self.calls > STEP_CALLS / 2
    }
}

impl Outcome {
    /// Why the check says nothing; `None` if it does.
    fn silence(&self) -> Option<&'static str> {
        match self.items {
            None if not_run(self.name).is_some() => not_run(self.name),
            None => Some("not complete: the memory that it walks has no end"),
            Some(0) => Some("nothing to look at"),
            Some(_) => None,
        }
    }

    /// Whether it could not judge all that an image shows.
    fn is_limited(&self) -> bool {
        not_run(self.name).is_none() && (self.silence().is_some() || self.unjudged > 0)
    }

    /// Adds a finding that is not there yet: a check reports what stands again and again.
    fn add(&mut self, finding: Finding) {
        let is_same = |known: &Finding| {
            (&known.what, known.address, &known.symbol)
                == (&finding.what, finding.address, &finding.symbol)
        };
        if !finding.restored && !self.findings.iter().any(is_same) {
            self.findings.push(finding);
        }
    }
}

/// What a kernel's memory says about the kernel.
struct Description {
    release: String,
    /// As `/proc/kallsyms` has it.
    symbols: String,
    btf: Vec<u8>,
    notes: Vec<u8>,
    /// Addresses of the image's first byte.
    text: u64,
    text_physical: u64,
    calls_changed: bool,
}

impl Description {
    /// The kernel in `dump`. A program can have memory that looks like one: if there are several, none is believed.
    fn find(dump: &Dump) -> Result<Self> {
        let mut known: Result<Self> = Err(anyhow!(
            "no Linux kernel found: the image has no VMCOREINFO, neither as a note nor at the beginning of a page"
        ));
        let mut likely = HashSet::new();
        for information in Information::all(dump) {
            if Tables::are_named(&information) && !likely.insert(information.clone()) {
                continue;
            }
            ensure!(
                likely.len() <= MAX_CANDIDATES,
                "more than {MAX_CANDIDATES} of its pages look like a VMCOREINFO: use an ELF core with a VMCOREINFO note"
            );
            match (&known, Self::read(dump, &information)) {
                (Ok(first), Ok(second)) if !first.is_same(&second) => bail!(
                    "there are two descriptions of a kernel in it, at {:#x} and {:#x}: use an ELF core with a VMCOREINFO \
                     note",
                    first.text,
                    second.text
                ),
                (Ok(_), _) => {}
                (Err(_), new) => known = new,
            }
        }
        known
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.release, &self.symbols, &self.btf, &self.notes, self.text_physical)
            == (&other.release, &other.symbols, &other.btf, &other.notes, other.text_physical)
    }

    fn read(dump: &Dump, information: &Information) -> Result<Self> {
        let read = |address: u64, bytes: usize| {
            bytes_at(dump, information.physical(address)?, bytes)
                .with_context(|| format!("the image lacks memory of the kernel at {address:#x}"))
        };
        let symbols = Tables::read(information, read)?.listing()?;
        let find = |name: &str| {
            symbols.lines().find_map(|line| {
                let (address, rest) = line.split_once(' ')?;
                (rest.get(2..) == Some(name)).then(|| u64::from_str_radix(address, 16).ok())?
            })
        };
        let address =
            |name: &str| find(name).with_context(|| format!("the kernel has no symbol {name}"));
        let part = |start: &str, stop: &str| {
            let (from, to) = (address(start)?, address(stop)?);
            let bytes = to.wrapping_sub(from);
            ensure!(bytes <= MAX_PART, "{start} to {stop} are {bytes} bytes");
            read(from, bytes as usize)
        };
        let btf = part("__start_BTF", "__stop_BTF")
            .context("the checks need a kernel that describes its types (CONFIG_DEBUG_INFO_BTF)")?;
        let stuffs = Btf::parse(&btf)?.constant("RETBLEED_MITIGATION_STUFF");
        let retbleed = find("retbleed_mitigation").and_then(|at| read(at, 4).ok());
        let retbleed = retbleed.and_then(|bytes| Some(u32::from_le_bytes(*bytes.first_chunk()?)));
        let text = address("_text")?;
        Ok(Self {
            release: information.release()?.to_owned(),
            calls_changed: stuffs.is_some() && stuffs == retbleed.map(u64::from),
            notes: part("__start_notes", "__stop_notes")?,
            text,
            text_physical: information.physical(text)?,
            btf,
            symbols,
        })
    }

    /// The kernel's encoded profile, the code that it is compared with, and a warning.
    fn profile(&self, package: Option<&Path>) -> Result<(Vec<u8>, Code, Option<String>)> {
        let usual = Path::new("/boot").join(format!("vmlinuz-{}", self.release));
        let file = package.unwrap_or(&usual);
        let read = || Package::new(file, &ThisMachine.read(file)?, self.notes.clone());
        let compared = read().and_then(|package| {
            let filtered = package.compare(&self.symbols, |_| Some(self.text))?;
            Ok((package, filtered))
        });
        let (image, filtered) = match &compared {
            Ok((image, filtered)) => (Some(image), filtered.as_ref()),
            Err(_) => (None, None),
        };
        let place = format!("{:x}-{0:x} : Kernel code\n", self.text_physical);
        let plain = Sources {
            btf: &self.btf,
            kallsyms: filtered.map_or(&self.symbols, |filtered| &filtered.listing),
            iomem: &place,
            release: &self.release,
            image: None,
        };
        let image = image.map(|image| image.image(self.calls_changed)).transpose()?;
        let code = match &compared {
            Ok(_) => Code::Package(file.to_owned()),
            Err(error) if package.is_some() => bail!("{error:#}"),
            Err(error) => Code::AsFound(format!("{error:#}")),
        };
        Ok((build(&Sources { image, ..plain })?, code, filtered.map(ToString::to_string)))
    }
}

/// The `bytes` bytes at a physical address.
fn bytes_at(dump: &Dump, physical: u64, bytes: usize) -> Option<Vec<u8>> {
    let mut all = Vec::with_capacity(bytes);
    let mut at = physical;
    while all.len() < bytes {
        let offset = at % PAGE_BYTES;
        let page = dump.page(at - offset)?;
        let whole = page.iter().flat_map(|word| word.load(Relaxed).to_le_bytes());
        all.extend(whole.skip(offset as usize).take(bytes - all.len()));
        at = at.checked_add(PAGE_BYTES - offset)?;
    }
    Some(all)
}

impl Inspection {
    /// The findings, with their checks' names.
    fn findings(&self) -> impl Iterator<Item = (&'static str, &Finding)> {
        self.checks.iter().flat_map(|check| check.findings.iter().map(|it| (check.name, it)))
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        let is_limited =
            matches!(self.code, Code::AsFound(_)) || self.checks.iter().any(Outcome::is_limited);
        match self.findings().next() {
            Some(_) => FOUND,
            None if is_limited => UNJUDGED,
            None => 0,
        }
    }

    /// What the image's list of symbols hides or forges, in one line.
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
        let findings = self.findings().map(|(check, it)| {
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
        writeln!(
            f,
            "image    {image}: {}, {mib:.1} MiB in {ranges} range{}",
            self.format,
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
        for (_, finding) in self.findings() {
            writeln!(f, "FINDING  {}", finding.line())?;
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
