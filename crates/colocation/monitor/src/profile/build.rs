//! Makes a profile from what the running kernel says of itself.

use super::btf::Btf;
use super::fingerprints::FingerprintSections;
use super::format::Header;
use super::listing::{self, SymbolLine};
use super::requirements::{Need, CONSTANTS, MEMBERS, STRUCTURES, SYMBOLS};
use super::vmlinux;
use super::{Profile, ProfileError};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Where Linux describes its types.
pub const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Where Linux lists its symbols.
pub const KALLSYMS: &str = "/proc/kallsyms";
/// Where Linux says what lies where in physical memory.
pub const IOMEM: &str = "/proc/iomem";

/// Where Linux shows the notes of its image.
pub const NOTES: &str = "/sys/kernel/notes";

/// What a profile is made of.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// The bytes of [`BTF`].
    pub btf: &'a [u8],
    /// The text of [`KALLSYMS`], read by root.
    pub kallsyms: &'a str,
    /// The text of [`IOMEM`], read by root.
    pub iomem: &'a str,
    /// What `uname -r` fingerprints.
    pub release: &'a str,
    /// The image of the kernel's package, for fingerprints of it.
    pub image: Option<Image<'a>>,
}

/// What fingerprints are made of.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    /// The unpacked payload of a bzImage: an ELF file with relocations behind it.
    pub vmlinux: &'a [u8],
    /// The bytes of [`NOTES`]: they say which build runs.
    pub notes: &'a [u8],
    /// Random numbers.
    pub key: [u64; 2],
    /// The kernel tracks the depth of calls (`retbleed=stuff`): it has changed where they lead.
    pub calls_changed: bool,
}

/// The encoded profile. The first required symbol, member or constant that the kernel lacks is the error.
pub fn build(sources: &Sources<'_>) -> Result<Vec<u8>, ProfileError> {
    let mut symbols = listing::symbols(sources.kallsyms)?;
    // Of several names for an address the global one comes first.
    symbols.sort_by_key(|symbol| (symbol.address, symbol.kind.is_ascii_lowercase(), symbol.name));
    symbols.dedup();
    let address_of = |name: &str| {
        let found = symbols.iter().find(|symbol| symbol.name == name);
        found
            .map(|symbol| symbol.address)
            .ok_or_else(|| ProfileError::Missing(format!("symbol {name}")))
    };
    for name in SYMBOLS {
        address_of(name)?;
    }
    let header = Header {
        text: address_of("_text")?,
        end: address_of("_end")?,
        text_physical: listing::code_start(sources.iomem)?,
        ..Header::default()
    };
    let btf = Btf::parse(sources.btf)?;
    let fingerprints = match &sources.image {
        Some(image) => vmlinux::fingerprints(image, &symbols, &btf, &header)?,
        None => FingerprintSections::default(),
    };
    encode(header, &symbols, &layouts(&btf)?, sources.release.trim(), fingerprints)
}

/// A profile of nothing, for tests of what only carries one.
pub fn empty() -> Vec<u8> {
    let header = Header { text: 1 << 63, end: (1 << 63) + 4096, ..Header::default() };
    encode(header, &[], &[], "none", FingerprintSections::default())
        .expect("nothing breaks no rule")
}

/// The bytes of a profile; `symbols` are sorted by address, `layouts` by key.
pub(crate) fn encode(
    header: Header,
    symbols: &[SymbolLine<'_>],
    layouts: &[LayoutEntry],
    release: &str,
    fingerprints: FingerprintSections,
) -> Result<Vec<u8>, ProfileError> {
    let [addresses, name_ends, kinds, by_name, names] = symbol_parts(symbols)?;
    let [layouts, keys] = layout_parts(layouts);
    let release = release.as_bytes().to_vec();
    let FingerprintSections { key, covered, fingerprints, masks } = fingerprints;
    let parts = [
        addresses,
        name_ends,
        kinds,
        by_name,
        names,
        layouts,
        keys,
        release,
        key,
        covered,
        fingerprints,
        masks,
    ];
    let bytes = header.encode(parts)?;
    Profile::decode(&bytes)?;
    Ok(bytes)
}

/// Key, value, bytes.
pub(crate) type LayoutEntry = (String, u64, u64);

/// Everything that is wanted and there.
fn layouts(btf: &Btf<'_>) -> Result<Vec<LayoutEntry>, ProfileError> {
    let mut layouts = Vec::new();
    for (structure, member, need) in MEMBERS {
        match (btf.member(structure, member), need) {
            (Some((offset, bytes)), _) => {
                layouts.push((format!("{structure}.{member}"), offset, bytes))
            }
            (None, Need::Optional) => {}
            (None, Need::Required) => {
                return Err(ProfileError::Missing(format!("member {structure}.{member}")))
            }
        }
    }
    for name in MEMBERS.iter().map(|(structure, ..)| structure).chain(STRUCTURES) {
        layouts.extend(btf.size_of(name).map(|bytes| (String::from(*name), 0, bytes)));
    }
    for (name, need) in CONSTANTS {
        match (btf.constant(name), need) {
            (Some(value), _) => layouts.push((format!("#{name}"), value, 0)),
            (None, Need::Optional) => {}
            (None, Need::Required) => {
                return Err(ProfileError::Missing(format!("constant {name}")))
            }
        }
    }
    layouts.sort();
    layouts.dedup_by(|a, b| a.0 == b.0);
    Ok(layouts)
}

/// The sections of the symbols, which are sorted by address.
fn symbol_parts(symbols: &[SymbolLine<'_>]) -> Result<[Vec<u8>; 5], ProfileError> {
    let total: usize = symbols.iter().map(|symbol| symbol.name.len()).sum();
    if u32::try_from(total).is_err() || u32::try_from(symbols.len()).is_err() {
        return Err(ProfileError::Kallsyms("it is too long"));
    }
    let mut rank: Vec<u32> = (0..symbols.len() as u32).collect();
    rank.sort_by_key(|&at| (symbols[at as usize].name, at));
    let mut end = 0;
    let ends = symbols.iter().map(|symbol| {
        end += symbol.name.len() as u32;
        end
    });
    let name_ends = core::iter::once(0).chain(ends).flat_map(u32::to_le_bytes).collect();
    Ok([
        symbols.iter().flat_map(|symbol| symbol.address.to_le_bytes()).collect(),
        name_ends,
        symbols.iter().map(|symbol| symbol.kind).collect(),
        rank.into_iter().flat_map(u32::to_le_bytes).collect(),
        symbols.iter().flat_map(|symbol| symbol.name.bytes()).collect(),
    ])
}

/// The sections of the layouts, which are sorted by key.
fn layout_parts(layouts: &[LayoutEntry]) -> [Vec<u8>; 2] {
    let mut entries = Vec::new();
    let mut keys = Vec::new();
    for (key, value, bytes) in layouts {
        entries.extend((keys.len() as u32).to_le_bytes());
        entries.extend((key.len() as u32).to_le_bytes());
        entries.extend(value.to_le_bytes());
        entries.extend(bytes.to_le_bytes());
        keys.extend(key.bytes());
    }
    [entries, keys]
}
