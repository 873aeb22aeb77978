//! What the monitor needs of the running kernel: its profile, and memory for the copies that it compares with.

use crate::machine::Machine;
use anyhow::{anyhow, ensure, Context, Result};
use kyozon_monitor::profile::build::{build, Sources, BTF, IOMEM, KALLSYMS};
use kyozon_monitor::profile::{Profile, ProfileError};
use kyozon_monitor::{tasks::Tasks, text::TextCheck};

/// Memory beside the copies of text and read-only data, bytes: the microkernel's tables, tasks seen, findings.
const BESIDE: u64 = 16 << 20;
const MIB: u64 = 1 << 20;

/// What the monitor needs for one kernel.
pub struct Needs {
    /// The kernel's encoded profile.
    pub profile: Vec<u8>,
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

/// Asks the running kernel. Whatever keeps the monitor from watching it is the error.
pub fn needs(machine: &impl Machine) -> Result<Needs> {
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
    };
    of(&sources).map_err(|error| {
        let advice = match error {
            ProfileError::Hidden(KALLSYMS) => ": load as root, with kernel.kptr_restrict below 2",
            ProfileError::Hidden(_) => ": load with CAP_SYS_ADMIN",
            _ => "",
        };
        anyhow!("the monitor cannot watch this kernel: {error}{advice}")
    })
}

fn of(sources: &Sources<'_>) -> Result<Needs, ProfileError> {
    let bytes = build(sources)?;
    let profile = Profile::decode(&bytes)?;
    // The checks themselves know best what they need.
    Tasks::new(&profile)?;
    TextCheck::new(&profile)?;
    let distance = |from: &str, to: &str| {
        let [from, to] = [from, to].map(|name| {
            profile.symbol(name).ok_or_else(|| ProfileError::Missing(format!("symbol {name}")))
        });
        Ok(to?.saturating_sub(from?))
    };
    let copies = distance("_stext", "_etext")? + distance("__start_rodata", "__end_rodata")?;
    // The profile is copied, too.
    let least = (copies + copies.div_ceil(8) + bytes.len() as u64 + BESIDE).next_multiple_of(MIB);
    Ok(Needs { profile: bytes, least })
}
