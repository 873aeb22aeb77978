//! Makes a profile from the running kernel's own description.

use super::btf::Btf;
use super::fingerprints::FingerprintSections;
use super::format::Header;
use super::listing::{self, SymbolNames};
use super::requirements::{constants, members, symbols as required_symbols, Need};
use super::vmlinux;
use super::ProfileError;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The file with Linux's type information.
pub const BTF: &str = "/sys/kernel/btf/vmlinux";
/// The file with Linux's symbols.
pub const KALLSYMS: &str = "/proc/kallsyms";
/// The file with the physical memory map.
pub const IOMEM: &str = "/proc/iomem";
/// The file with the ELF notes of the running image.
pub const NOTES: &str = "/sys/kernel/notes";

/// The inputs of a profile.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// The bytes of [`BTF`].
    pub btf: &'a [u8],
    /// The text of [`KALLSYMS`], read by root.
    pub kallsyms: &'a str,
    /// The text of [`IOMEM`], read by root.
    pub iomem: &'a str,
    /// The output of `uname -r`.
    pub release: &'a str,
    /// The kernel package's image, if the profile should contain fingerprints of it.
    pub image: Option<Image<'a>>,
}

/// The inputs of the fingerprints.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    /// The unpacked payload of a bzImage: an ELF file followed by relocations.
    pub vmlinux: &'a [u8],
    /// The bytes of [`NOTES`], which identify the running build.
    pub notes: &'a [u8],
    /// A random key.
    pub key: [u64; 2],
    /// The kernel tracks call depth (`retbleed=stuff`) and has changed the targets of calls for it.
    pub calls_changed: bool,
}

/// Makes the encoded profile. Only [`Profile::decode`](super::Profile::decode) says whether all that it holds is valid.
///
/// # Errors
///
/// [`ProfileError::Missing`] for the first required symbol, member or constant that the kernel lacks; others if a
/// source is unusable.
pub fn build(sources: &Sources<'_>) -> Result<Vec<u8>, ProfileError> {
    let mut symbols = listing::symbols(sources.kallsyms)?;
    listing::sort(&mut symbols);
    symbols.dedup();
    let names = SymbolNames::new(&symbols);
    let address_of =
        |name: &str| names.get(name).ok_or_else(|| ProfileError::Missing(format!("symbol {name}")));
    for name in required_symbols() {
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
        Some(image) => vmlinux::fingerprints(image, &names, &btf, &header)?,
        None => FingerprintSections::default(),
    };
    encode(header, &names, &layouts(&btf)?, sources.release.trim(), fingerprints)
}

/// A profile without contents, for tests of code that only passes one on.
pub fn empty() -> Vec<u8> {
    of_symbols("")
}

/// A profile of an image that has nothing but the symbols in `kallsyms`, for tests.
pub fn of_symbols(kallsyms: &str) -> Vec<u8> {
    let mut symbols = listing::symbols(kallsyms).unwrap_or_default();
    symbols.sort_by_key(|symbol| symbol.address);
    let text = symbols.first().map_or(1 << 63, |symbol| symbol.address & !0xfff);
    let end = symbols.last().map_or(text, |symbol| symbol.address & !0xfff) + 0x1000;
    let header = Header { text, end, ..Header::default() };
    encode(header, &SymbolNames::new(&symbols), &[], "none", FingerprintSections::default())
        .expect("a profile with symbols alone is valid")
}

/// Encodes a profile; `layouts` are sorted by key.
pub(crate) fn encode(
    header: Header,
    names: &SymbolNames<'_>,
    layouts: &[LayoutEntry],
    release: &str,
    fingerprints: FingerprintSections,
) -> Result<Vec<u8>, ProfileError> {
    let [addresses, name_ends, kinds, by_name, names] = symbol_parts(names)?;
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
    header.encode(parts)
}

/// Key, value, size in bytes.
pub(crate) type LayoutEntry = (String, u64, u64);

/// The layouts in the requirements that `btf` has.
fn layouts(btf: &Btf<'_>) -> Result<Vec<LayoutEntry>, ProfileError> {
    let mut layouts = Vec::new();
    for (structure, member, need) in members() {
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
    for (name, ..) in members() {
        layouts.extend(btf.size_of(name).map(|bytes| (String::from(name), 0, bytes)));
    }
    for (name, need) in constants() {
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

/// The sections for the symbols.
fn symbol_parts(names: &SymbolNames<'_>) -> Result<[Vec<u8>; 5], ProfileError> {
    let symbols = names.symbols;
    let total: usize = symbols.iter().map(|symbol| symbol.name.len()).sum();
    if u32::try_from(total).is_err() || u32::try_from(symbols.len()).is_err() {
        return Err(ProfileError::Kallsyms("it is too long"));
    }
    let count = symbols.len();
    let [mut addresses, mut ends, mut by_name] =
        [8, 4, 4].map(|size| Vec::with_capacity(size * count));
    let mut texts = Vec::with_capacity(total);
    ends.extend_from_slice(&0u32.to_le_bytes());
    for symbol in symbols {
        addresses.extend_from_slice(&symbol.address.to_le_bytes());
        texts.extend_from_slice(symbol.name.as_bytes());
        ends.extend_from_slice(&(texts.len() as u32).to_le_bytes());
    }
    names.by_name.iter().for_each(|at| by_name.extend_from_slice(&at.to_le_bytes()));
    Ok([addresses, ends, symbols.iter().map(|symbol| symbol.kind).collect(), by_name, texts])
}

/// The sections for `layouts`, which are sorted by key.
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
