//! The monitor's requirements: a profile of the running kernel, and memory for the copies that it compares with.

use crate::machine::Machine;
use crate::payload;
use anyhow::{anyhow, ensure, Context, Result};
use kyozon_monitor::profile::build::{build, Image, Sources, BTF, IOMEM, KALLSYMS, NOTES};
use kyozon_monitor::profile::{Profile, ProfileError};
use kyozon_monitor::{tasks::TaskCheck, text::TextCheck};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Memory in addition to the copies of text and read-only data, bytes: the microkernel's tables, tasks seen, findings.
const EXTRA: u64 = 16 << 20;
const MIB: u64 = 1 << 20;
/// Linux's mitigation of Retbleed.
const RETBLEED: &str = "/sys/devices/system/cpu/vulnerabilities/retbleed";

/// The monitor's requirements for one kernel.
pub struct Requirements {
    /// The kernel's encoded profile.
    pub profile: Vec<u8>,
    /// Origin of the code that the monitor trusts.
    pub code: Code,
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
    let btf = machine
        .read(BTF.as_ref())
        .context("the monitor needs a kernel that describes its types (CONFIG_DEBUG_INFO_BTF)")?;
    let [kallsyms, iomem] = [KALLSYMS, IOMEM].map(|file| machine.read(file.as_ref()));
    let (kallsyms, iomem) = (kallsyms?, iomem?);
    let sources = Sources {
        btf: &btf,
        kallsyms: &String::from_utf8_lossy(&kallsyms),
        iomem: &String::from_utf8_lossy(&iomem),
        release: &machine.release(),
        image: None,
    };
    let plain = from_sources(&sources).map_err(|error| {
        let advice = match error {
            ProfileError::Hidden(KALLSYMS) => ": run as root, with kernel.kptr_restrict below 2",
            ProfileError::Hidden(_) => ": load with CAP_SYS_ADMIN",
            _ => "",
        };
        anyhow!("the monitor cannot watch this kernel: {error}{advice}")
    })?;
    let usual = Path::new("/boot").join(format!("vmlinuz-{}", machine.release()));
    match with_image(machine, &sources, image.unwrap_or(&usual)) {
        Err(error) if image.is_some() => Err(error),
        Err(error) => Ok(Requirements { code: Code::AsFound(format!("{error:#}")), ..plain }),
        requirements => requirements,
    }
}

/// Like [`requirements`], with fingerprints of the image in `file`.
fn with_image(machine: &impl Machine, sources: &Sources<'_>, file: &Path) -> Result<Requirements> {
    let packed = machine.read(file)?;
    let vmlinux = payload::unpack(&packed).with_context(|| file.display().to_string())?;
    let notes = machine.read(NOTES.as_ref())?;
    // A kernel without this file has no such mitigation.
    let calls = machine.read(RETBLEED.as_ref()).unwrap_or_default();
    let image = Image {
        vmlinux: &vmlinux,
        notes: &notes,
        key: [random()?, random()?],
        calls_changed: String::from_utf8_lossy(&calls).contains("Stuffing"),
    };
    let plain = from_sources(&Sources { image: Some(image), ..*sources });
    let plain = plain.with_context(|| file.display().to_string())?;
    Ok(Requirements { code: Code::Package(file.to_owned()), ..plain })
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
    TaskCheck::new(&profile)?;
    TextCheck::new(&profile)?;
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
    Ok(Requirements { profile: bytes, min_memory, code: Code::AsFound(String::new()) })
}
