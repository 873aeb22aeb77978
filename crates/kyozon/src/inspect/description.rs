//! What a kernel's memory says about the kernel: its symbols, its types, the addresses at which it lies.

use super::dump::Dump;
use super::information::Information;
use super::symbols::Tables;
use crate::machine::{Machine, ThisMachine};
use crate::monitor::{Code, Package};
use anyhow::{anyhow, bail, ensure, Context, Result};
use kyozon_monitor::memory::{KernelMemory, PAGE_BYTES};
use kyozon_monitor::profile::btf::Btf;
use kyozon_monitor::profile::build::{build, Sources};
use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

/// Maximum number of pages that are tried as the kernel's description of itself.
const MAX_CANDIDATES: usize = 64;
/// Maximum bytes of a kernel's description of its types, and of its notes.
const MAX_PART: u64 = 64 << 20;

/// What a kernel's memory says about the kernel.
pub struct Description {
    release: String,
    /// As `/proc/kallsyms` has it.
    symbols: String,
    btf: Vec<u8>,
    notes: Vec<u8>,
    /// Addresses of the image's first byte.
    text: u64,
    text_physical: u64,
    pub calls_changed: bool,
}

impl Description {
    /// The kernel in `dump`. A program can have memory that looks like one: if there are several, none is believed.
    pub fn find(dump: &Dump) -> Result<Self> {
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

    /// The kernel's encoded profile, the code that it is compared with, and a warning. Unless it `judges_code`, the
    /// package's image tells symbols only.
    pub fn profile(
        &self,
        package: Option<&Path>,
        judges_code: bool,
    ) -> Result<(Vec<u8>, Code, Option<String>)> {
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
        let image = image.filter(|_| judges_code);
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
pub fn bytes_at(dump: &Dump, physical: u64, bytes: usize) -> Option<Vec<u8>> {
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
