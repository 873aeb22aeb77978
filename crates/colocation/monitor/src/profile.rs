//! The profile of a kernel: its symbols, structure layouts and image location. Made on the target, read by the checks.
//!
//! The encoding is little-endian: a header, then the sections that it points to; see `format`.

pub mod btf;
pub mod build;
mod error;
pub mod filtered;
pub mod fingerprints;
pub(crate) mod format;
pub(crate) mod listing;
pub mod requirements;
#[cfg(test)]
mod tests;
mod validate;
pub(crate) mod vmlinux;

pub use error::ProfileError;
pub use vmlinux::symbols::{text_start, ImageSymbol, SymbolTable};

use format::{Header, Section};
use validate::rule;

/// Maximum bytes of an encoded profile.
pub const MAX_PROFILE_BYTES: usize = 16 << 20;
/// Maximum offset or size in a profile, so that sums of a few of them cannot overflow.
pub const MAX_LAYOUT_BYTES: u64 = 1 << 32;

/// The position of a member in its structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Byte offset from the structure's beginning.
    pub offset: u64,
    /// Bytes of the member; for an array, of all elements.
    pub bytes: u64,
}

/// A symbol of the core kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Virtual address.
    pub address: u64,
    /// The letter in `/proc/kallsyms`: `t` text, `d` data, `r` read-only data, `b` zeroed data, `a` absolute; upper
    /// case for global symbols.
    pub kind: u8,
    /// The name; several symbols can have the same one.
    pub name: &'a str,
}

/// Symbol addresses that every address translation needs, looked up once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Anchors {
    pub page_offset_base: Option<u64>,
    pub vmalloc_base: Option<u64>,
    pub top_table: Option<u64>,
    pub five_levels: Option<u64>,
}

/// A profile, read in place from its encoding. Nothing is copied, and nothing is used before it was validated.
pub struct Profile<'a> {
    bytes: &'a [u8],
    header: Header,
    pub(crate) anchors: Anchors,
}

impl<'a> Profile<'a> {
    /// Validates all of `bytes` in linear time, so that no later lookup can fail on them.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Malformed`] with the first rule that `bytes` break.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, ProfileError> {
        Self::decode_in_parts(bytes, &mut || {})
    }

    /// [`Profile::decode`] with calls of `pause` in between, some ten microseconds apart on a processor.
    ///
    /// # Errors
    ///
    /// As those of [`Profile::decode`].
    pub fn decode_in_parts(bytes: &'a [u8], pause: &mut dyn FnMut()) -> Result<Self, ProfileError> {
        let header = Header::decode(bytes)?;
        let mut profile = Self { bytes, header, anchors: Anchors::default() };
        profile.check_symbols(pause)?;
        profile.check_layouts(pause)?;
        profile.check_fingerprints(pause)?;
        profile.anchors = Anchors {
            page_offset_base: profile.symbol("page_offset_base"),
            vmalloc_base: profile.symbol("vmalloc_base"),
            top_table: profile.symbol("init_top_pgt").or_else(|| profile.symbol("swapper_pg_dir")),
            five_levels: profile.symbol("__pgtable_l5_enabled"),
        };
        Ok(profile)
    }

    /// The kernel release, as `uname -r` prints it.
    pub fn release(&self) -> &'a str {
        self.text(self.header.release, 0, self.header.release.count)
    }

    /// Virtual address of the image's first byte, `_text`.
    pub fn text_base(&self) -> u64 {
        self.header.text
    }

    /// Virtual address of the image's end, `_end`.
    pub fn image_end(&self) -> u64 {
        self.header.end
    }

    /// Physical address of `_text`. The image is contiguous.
    pub fn text_physical(&self) -> u64 {
        self.header.text_physical
    }

    /// Virtual address of the symbol `name`; the lowest if there are several.
    pub fn symbol(&self, name: &str) -> Option<u64> {
        let count = self.header.by_name.count;
        let at = partition(count, |i| self.name_bytes(self.ranked(i)) < name.as_bytes());
        (at < count && self.name(self.ranked(at)) == name).then(|| self.address(self.ranked(at)))
    }

    /// All symbols called `name`, in address order.
    pub fn symbols_called<'s>(&'s self, name: &'s str) -> impl Iterator<Item = Symbol<'a>> + 's {
        self.symbols_starting_with(name).take_while(move |symbol| symbol.name == name)
    }

    /// All symbols whose names start with `prefix`, in the order of their names.
    pub fn symbols_starting_with<'s>(
        &'s self,
        prefix: &'s str,
    ) -> impl Iterator<Item = Symbol<'a>> + 's {
        let count = self.header.by_name.count;
        let at = partition(count, |i| self.name_bytes(self.ranked(i)) < prefix.as_bytes());
        let symbols = (at..count).map(|i| self.nth(self.ranked(i)));
        symbols.take_while(move |symbol| symbol.name.starts_with(prefix))
    }

    /// The last symbol at or below `address` and the byte offset from it; `None` outside the kernel's image.
    pub fn nearest(&self, address: u64) -> Option<(&str, u64)> {
        if address < self.header.text || address >= self.header.end {
            return None;
        }
        let below =
            partition(self.symbol_count(), |i| self.address(i) <= address).checked_sub(1)?;
        let base = self.address(below);
        let first = partition(below, |i| self.address(i) < base);
        Some((self.name(first), address - base))
    }

    /// The symbols at `address` and above, in address order.
    pub fn symbols_from(&self, address: u64) -> impl Iterator<Item = Symbol<'a>> + '_ {
        let first = partition(self.symbol_count(), |i| self.address(i) < address);
        (first..self.symbol_count()).map(|i| self.nth(i))
    }

    /// Number of symbols.
    pub fn symbol_count(&self) -> usize {
        self.header.addresses.count
    }

    /// The position of the member `path` in `structure`. A path may lead through embedded structures: `idr_rt.xa_head`.
    pub fn field(&self, structure: &str, path: &str) -> Option<Field> {
        let at = self.layout(&[structure, ".", path])?;
        Some(Field { offset: at.0, bytes: at.1 })
    }

    /// Size of `structure` in bytes.
    pub fn size_of(&self, structure: &str) -> Option<u64> {
        self.layout(&[structure]).map(|at| at.1)
    }

    /// Value of the enumeration constant `name`.
    pub fn constant(&self, name: &str) -> Option<u64> {
        self.layout(&["#", name]).map(|at| at.0)
    }

    /// Value and size of the entry whose key is the concatenation of `parts`.
    fn layout(&self, parts: &[&str]) -> Option<(u64, u64)> {
        let key = || parts.iter().flat_map(|part| part.bytes());
        let count = self.header.layouts.count;
        let at = partition(count, |i| self.key(i).bytes().lt(key()));
        if at >= count || !self.key(at).bytes().eq(key()) {
            return None;
        }
        Some((
            self.u64_at(self.header.layouts, 3 * at + 1),
            self.u64_at(self.header.layouts, 3 * at + 2),
        ))
    }

    fn key(&self, at: usize) -> &'a str {
        let place = self.u64_at(self.header.layouts, 3 * at);
        self.text(self.header.keys, place as u32 as usize, (place >> 32) as usize)
    }

    fn nth(&self, at: usize) -> Symbol<'a> {
        let kind = self.bytes.get(self.header.kinds.offset + at).copied().unwrap_or(b'?');
        Symbol { address: self.address(at), kind, name: self.name(at) }
    }

    fn address(&self, at: usize) -> u64 {
        self.u64_at(self.header.addresses, at)
    }

    fn name(&self, at: usize) -> &'a str {
        core::str::from_utf8(self.name_bytes(at)).unwrap_or_default()
    }

    /// The same for comparisons, which are many: nothing need be known of the bytes.
    fn name_bytes(&self, at: usize) -> &'a [u8] {
        let start = self.u32_at(self.header.name_ends, at) as usize;
        let end = self.u32_at(self.header.name_ends, at + 1) as usize;
        self.part(self.header.names, start, end.saturating_sub(start))
    }

    /// Index of the symbol at position `rank` in name order.
    fn ranked(&self, rank: usize) -> usize {
        self.u32_at(self.header.by_name, rank) as usize
    }

    fn u32_at(&self, section: Section, at: usize) -> u32 {
        self.bytes
            .get(section.offset + 4 * at..)
            .and_then(|b| b.first_chunk())
            .map_or(0, |b| u32::from_le_bytes(*b))
    }

    fn u64_at(&self, section: Section, at: usize) -> u64 {
        self.bytes
            .get(section.offset + 8 * at..)
            .and_then(|b| b.first_chunk())
            .map_or(0, |b| u64::from_le_bytes(*b))
    }

    /// The text at `start` in a section of bytes; empty if it is not inside the section.
    fn text(&self, section: Section, start: usize, length: usize) -> &'a str {
        core::str::from_utf8(self.part(section, start, length)).unwrap_or_default()
    }

    fn part(&self, section: Section, start: usize, length: usize) -> &'a [u8] {
        let whole = &self.bytes[section.offset..section.offset + section.count];
        start.checked_add(length).and_then(|end| whole.get(start..end)).unwrap_or_default()
    }
}

/// The first of `0..count` for which `below` is false, by binary search.
fn partition(count: usize, below: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if below(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
