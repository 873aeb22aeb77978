//! The monitor's requirements: a profile of the running kernel, and memory for the copies that it compares with.

use crate::machine::Machine;
use crate::payload;
use anyhow::{anyhow, ensure, Context, Result};
use kyozon_monitor::profile::build::{build, Image, Sources, BTF, IOMEM, KALLSYMS, NOTES};
use kyozon_monitor::profile::filtered::{self, Filtered};
use kyozon_monitor::profile::{text_start, Profile, ProfileError, SymbolTable};
use kyozon_monitor::registry;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Memory in addition to the copies of text and read-only data, bytes: the copies of code of modules and BPF programs,
/// the microkernel's tables, tasks seen, findings.
const EXTRA: u64 = 28 << 20;
const MIB: u64 = 1 << 20;
/// This process's capabilities. CAP_SYSLOG is bit 34 of the effective ones (capabilities(7)).
const OWN_STATUS: &str = "/proc/self/status";
const CAP_SYSLOG: u32 = 34;
/// Whether Linux hides addresses: 0 and 1 show them to those who have CAP_SYSLOG.
const KPTR_RESTRICT: &str = "/proc/sys/kernel/kptr_restrict";
/// Linux's memory as an ELF file, and the bytes of it that have the headers.
const KCORE: &str = "/proc/kcore";
const KCORE_HEAD: u64 = 16 << 10;
/// Linux's mitigation of Retbleed.
const RETBLEED: &str = "/sys/devices/system/cpu/vulnerabilities/retbleed";

/// The monitor's requirements for one kernel.
pub struct Requirements {
    /// The kernel's encoded profile.
    pub profile: Vec<u8>,
    /// Origin of the code that the monitor trusts.
    pub code: Code,
    /// What the list of symbols hides or forges, in one line.
    pub warning: Option<String>,
    /// Minimum memory, bytes.
    min_memory: u64,
}

impl Requirements {
    /// The memory to request, bytes: `wanted` or the minimum.
    ///
    /// # Errors
    ///
    /// `wanted` is below the minimum.
    pub fn memory(&self, wanted: Option<u64>) -> Result<u64> {
        let memory = wanted.unwrap_or(self.min_memory);
        let min = self.min_memory / MIB;
        ensure!(
            memory >= self.min_memory,
            "the monitor needs {min}M of memory for this kernel: use --memory {min}M or more, or leave --memory out"
        );
        Ok(memory)
    }
}

/// Origin of the code that the monitor trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// The kernel package's image: memory is compared with it once.
    Package(PathBuf),
    /// Memory as found at the load, and why no image was used.
    AsFound(String),
}

/// Profiles the running kernel. `image` is the kernel's own image if the operator named one.
///
/// # Errors
///
/// The reason why the monitor cannot watch this kernel, or why a named `image` is unusable.
pub fn requirements(machine: &impl Machine, image: Option<&Path>) -> Result<Requirements> {
    profiled(machine, image, true)
}

/// The same for those who judge no code: if the image tells the symbols, the profile lacks its fingerprints.
///
/// # Errors
///
/// As those of [`requirements`].
pub fn description(machine: &impl Machine, image: Option<&Path>) -> Result<Requirements> {
    profiled(machine, image, false)
}

fn profiled(
    machine: &impl Machine,
    image: Option<&Path>,
    judges_code: bool,
) -> Result<Requirements> {
    let btf = machine
        .read(BTF.as_ref())
        .context("the monitor needs a kernel that describes its types (CONFIG_DEBUG_INFO_BTF)")?;
    let [kallsyms, iomem] = [KALLSYMS, IOMEM].map(|file| machine.read(file.as_ref()));
    let (kallsyms, iomem) = (kallsyms?, iomem?);
    let kallsyms = String::from_utf8_lossy(&kallsyms);
    let usual = Path::new("/boot").join(format!("vmlinuz-{}", machine.release()));
    let file = image.unwrap_or(&usual);
    let package = machine
        .read(file)
        .and_then(|packed| Package::new(file, &packed, machine.read(NOTES.as_ref())?));
    let compared = match &package {
        Ok(package) => package.compare(&kallsyms, |image_bytes| {
            let head = shows_addresses(machine)
                .then(|| machine.read_head(KCORE.as_ref(), KCORE_HEAD).ok())??;
            text_start(&head, image_bytes)
        }),
        Err(error) => Err(anyhow!("{error:#}")),
    };
    let filtered = compared.as_ref().ok().and_then(Option::as_ref);
    let sources = Sources {
        btf: &btf,
        kallsyms: filtered.map_or(&kallsyms, |filtered| &filtered.listing),
        iomem: &String::from_utf8_lossy(&iomem),
        release: &machine.release(),
        image: None,
    };
    let warning = filtered.map(ToString::to_string);
    // One that fits is all that is needed: making a profile takes long.
    let with_image = match package {
        Ok(_) if compared.is_ok() && !judges_code => None,
        package => Some(package.and_then(|package| package.requirements(machine, &sources))),
    };
    let why = match with_image.transpose() {
        Ok(Some(requirements)) => return Ok(Requirements { warning, ..requirements }),
        Ok(None) => None,
        Err(why) => Some(why),
    };
    let plain = from_sources(&sources).map_err(|error| {
        let without_image = match &compared {
            Err(why) => format!(", or give its image with --kernel-image ({why:#})"),
            Ok(_) => String::new(),
        };
        let advice = match error {
            ProfileError::Hidden(KALLSYMS) if shows_addresses(machine) => FILTERED,
            ProfileError::Hidden(KALLSYMS) => {
                return cannot_watch(&error, ": run as root, with kernel.kptr_restrict below 2")
            }
            ProfileError::Hidden(_) => {
                return cannot_watch(&error, ": load with CAP_SYS_ADMIN");
            }
            _ if lacks_common_symbols(&sources) => FILTERED,
            _ => return cannot_watch(&error, ""),
        };
        cannot_watch(&error, &format!("{advice}{without_image}"))
    })?;
    match why {
        Some(why) if image.is_some() => Err(why),
        Some(why) => Ok(Requirements { code: Code::AsFound(format!("{why:#}")), warning, ..plain }),
        None => Ok(Requirements { warning, ..plain }),
    }
}

fn cannot_watch(error: &ProfileError, advice: &str) -> anyhow::Error {
    anyhow!("the monitor cannot watch this kernel: {error}{advice}")
}

/// The advice if Linux should show its symbols and does not.
const FILTERED: &str = ", although it should: something filters /proc/kallsyms, as rootkits do. Compare the kernel with \
    its package from another system";
/// Symbols of every kernel that has the file: they name the ranges of the image.
const COMMON_SYMBOLS: [&str; 5] = ["_text", "_stext", "_etext", "_end", "init_task"];

/// Whether Linux must show symbols with their addresses to this process.
fn shows_addresses(machine: &impl Machine) -> bool {
    let read = |file: &str| {
        String::from_utf8_lossy(&machine.read(file.as_ref()).unwrap_or_default()).into_owned()
    };
    let capabilities = read(OWN_STATUS)
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    matches!(read(KPTR_RESTRICT).trim(), "0" | "1")
        && capabilities.is_some_and(|bits| bits >> CAP_SYSLOG & 1 != 0)
}

/// Whether the list of symbols lacks one that every kernel has.
fn lacks_common_symbols(sources: &Sources<'_>) -> bool {
    let has = |symbol: &str| {
        sources.kallsyms.lines().any(|line| line.split_ascii_whitespace().nth(2) == Some(symbol))
    };
    !COMMON_SYMBOLS.iter().all(|symbol| has(symbol))
}

/// The image of the kernel's package.
pub(crate) struct Package<'a> {
    file: &'a Path,
    vmlinux: Vec<u8>,
    /// The ELF notes of the kernel that it is compared with.
    notes: Vec<u8>,
}

impl<'a> Package<'a> {
    /// The image in `file`, whose contents are `packed`.
    pub fn new(file: &'a Path, packed: &[u8], notes: Vec<u8>) -> Result<Self> {
        let vmlinux = payload::unpack(packed).with_context(|| file.display().to_string())?;
        Ok(Self { file, vmlinux, notes })
    }

    /// What differs between the list of symbols and this image. `text`: see [`filtered::compare`].
    pub fn compare(
        &self,
        kallsyms: &str,
        text: impl FnOnce(u64) -> Option<u64>,
    ) -> Result<Option<Filtered>> {
        SymbolTable::read(&self.vmlinux, &self.notes)
            .and_then(|table| filtered::compare(&table, kallsyms, text))
            .with_context(|| self.file.display().to_string())
    }

    /// The input of a profile with fingerprints of this image.
    pub fn image(&self, calls_changed: bool) -> Result<Image<'_>> {
        let key = [random()?, random()?];
        Ok(Image { vmlinux: &self.vmlinux, notes: &self.notes, key, calls_changed })
    }

    /// Like [`requirements`], with fingerprints of this image.
    fn requirements(&self, machine: &impl Machine, sources: &Sources<'_>) -> Result<Requirements> {
        let image = self.image(counts_calls(machine))?;
        let plain = from_sources(&Sources { image: Some(image), ..*sources });
        let plain = plain.with_context(|| self.file.display().to_string())?;
        Ok(Requirements { code: Code::Package(self.file.to_owned()), ..plain })
    }
}

/// Whether the kernel counts calls, and has changed its code for it.
pub fn counts_calls(machine: &impl Machine) -> bool {
    // A kernel without this file has no such mitigation.
    let mitigation = machine.read(RETBLEED.as_ref()).unwrap_or_default();
    String::from_utf8_lossy(&mitigation).contains("Stuffing")
}

fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("/dev/urandom")?;
    Ok(u64::from_ne_bytes(bytes))
}

fn from_sources(sources: &Sources<'_>) -> Result<Requirements, ProfileError> {
    let bytes = build(sources)?;
    let profile = Profile::decode(&bytes)?;
    // The checks refuse a profile that lacks what they need.
    registry::require(&profile)?;
    let distance = |from: &str, to: &str| {
        let [from, to] = [from, to].map(|name| {
            profile.symbol(name).ok_or_else(|| ProfileError::Missing(format!("symbol {name}")))
        });
        Ok(to?.saturating_sub(from?))
    };
    let copies = distance("_stext", "_etext")? + distance("__start_rodata", "__end_rodata")?;
    // The profile is copied as well, and EXTRA covers neither copy of its fingerprints.
    let profiles = bytes.len() as u64 + profile.fingerprint_bytes();
    let min_memory = (copies + copies.div_ceil(8) + profiles + EXTRA).next_multiple_of(MIB);
    Ok(Requirements {
        profile: bytes,
        min_memory,
        code: Code::AsFound(String::new()),
        warning: None,
    })
}

#[cfg(test)]
mod tests;
