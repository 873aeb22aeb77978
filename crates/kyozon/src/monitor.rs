//! What the monitor needs of the running kernel: its profile, and memory for the copies that it compares with.

use crate::machine::Machine;
use crate::payload;
use anyhow::{anyhow, ensure, Context, Result};
use kyozon_monitor::profile::build::{build, Image, Sources, BTF, IOMEM, KALLSYMS, NOTES};
use kyozon_monitor::profile::{Profile, ProfileError};
use kyozon_monitor::{tasks::TaskCheck, text::TextCheck};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Memory beside the copies of text and read-only data, bytes: the microkernel's tables, tasks seen, findings.
const BESIDE: u64 = 16 << 20;
const MIB: u64 = 1 << 20;
/// Where Linux says what it does against Retbleed.
const RETBLEED: &str = "/sys/devices/system/cpu/vulnerabilities/retbleed";

/// What the monitor needs for one kernel.
pub struct Needs {
    /// The kernel's encoded profile.
    pub profile: Vec<u8>,
    /// What the kernel's code is compared with at first.
    pub code: Code,
    /// Least memory, bytes.
    least: u64,
}

impl Needs {
    /// The memory to ask for; `named` is what the operator wants. Too little is an error.
    pub fn memory(&self, named: Option<u64>) -> Result<u64> {
        let memory = named.unwrap_or(self.least);
        let least = self.least / MIB;
        ensure!(
            memory >= self.least,
            "the monitor needs {least}M of memory for this kernel: --memory {least}M, or nothing"
        );
        Ok(memory)
    }
}

/// What the copy of the kernel's code is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// This image of the kernel's package.
    Package(PathBuf),
    /// Nothing, and why.
    AsFound(String),
}

/// Asks the running kernel. Whatever keeps the monitor from watching it is the error. `image` is the kernel's own image
/// where it is named; that it is unusable is an error then.
pub fn needs(machine: &impl Machine, image: Option<&Path>) -> Result<Needs> {
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
    let plain = of(&sources).map_err(|error| {
        let advice = match error {
            ProfileError::Hidden(KALLSYMS) => ": load as root, with kernel.kptr_restrict below 2",
            ProfileError::Hidden(_) => ": load with CAP_SYS_ADMIN",
            _ => "",
        };
        anyhow!("the monitor cannot watch this kernel: {error}{advice}")
    })?;
    let usual = Path::new("/boot").join(format!("vmlinuz-{}", machine.release()));
    match with_image(machine, &sources, image.unwrap_or(&usual)) {
        Err(error) if image.is_some() => Err(error),
        Err(error) => Ok(Needs { code: Code::AsFound(format!("{error:#}")), ..plain }),
        needs => needs,
    }
}

/// The same with fingerprints of the image in `file`.
fn with_image(machine: &impl Machine, sources: &Sources<'_>, file: &Path) -> Result<Needs> {
    let packed = machine.read(file)?;
    let vmlinux = payload::unpack(&packed).with_context(|| file.display().to_string())?;
    let notes = machine.read(NOTES.as_ref())?;
    // Without the file nothing was changed for it.
    let calls = machine.read(RETBLEED.as_ref()).unwrap_or_default();
    let image = Image {
        vmlinux: &vmlinux,
        notes: &notes,
        key: [random()?, random()?],
        calls_changed: String::from_utf8_lossy(&calls).contains("Stuffing"),
    };
    let needs = of(&Sources { image: Some(image), ..*sources });
    let needs = needs.with_context(|| file.display().to_string())?;
    Ok(Needs { code: Code::Package(file.to_owned()), ..needs })
}

fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("/dev/urandom")?;
    Ok(u64::from_ne_bytes(bytes))
}

fn of(sources: &Sources<'_>) -> Result<Needs, ProfileError> {
    let bytes = build(sources)?;
    let profile = Profile::decode(&bytes)?;
    // The checks themselves know best what they need.
    TaskCheck::new(&profile)?;
    TextCheck::new(&profile)?;
    let distance = |from: &str, to: &str| {
        let [from, to] = [from, to].map(|name| {
            profile.symbol(name).ok_or_else(|| ProfileError::Missing(format!("symbol {name}")))
        });
        Ok(to?.saturating_sub(from?))
    };
    let copies = distance("_stext", "_etext")? + distance("__start_rodata", "__end_rodata")?;
    // The profile is copied, too. Of fingerprints neither copy is within what is beside.
    let profiles = bytes.len() as u64 + profile.fingerprint_bytes();
    let least = (copies + copies.div_ceil(8) + profiles + BESIDE).next_multiple_of(MIB);
    Ok(Needs { profile: bytes, least, code: Code::AsFound(String::new()) })
}
