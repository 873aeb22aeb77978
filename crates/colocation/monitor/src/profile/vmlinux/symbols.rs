//! The symbol table that a kernel's image holds for `/proc/kallsyms`.
//!
//! These objects lie in the read-only data, each at a multiple of 8 (the names are Linux's, without `kallsyms_`):
//!
//! | object | content |
//! |---|---|
//! | `offsets` | four bytes for each symbol |
//! | `relative_base` | address of the image's start |
//! | `num_syms` | number of symbols |
//! | `names` | for each symbol: number of tokens (one byte, or two if bit 7 of the first is set), then the tokens |
//! | `markers` | four bytes for each 256th symbol: its place in `names` |
//! | `seqs_of_names` | three bytes for each symbol: their order by name |
//! | `token_table` | 256 strings that end with zero. The tokens of a name give its type letter and the name |
//! | `token_index` | two bytes for each token: its place in `token_table` |
//!
//! Up to Linux 6.3 that is their order; some releases lack `seqs_of_names`. Since 6.4 the order is `num_syms`, `names`,
//! `markers`, `token_table`, `token_index`, `offsets`, `relative_base`, `seqs_of_names`.
//!
//! An offset of 0 and above is an address within per-CPU data, and one below 0 means `relative_base - 1 - offset`. If
//! none is below 0, as since Linux 6.15, all count from `relative_base`.
//!
//! Nothing says where the table is. The tokens `0` to `9` are found first, as names with digits use them; then each
//! object must fit the others.

use super::elf::{build_id, kernel_segment, Elf};
use super::unusable;
use crate::profile::ProfileError;
use alloc::string::String;
use alloc::vec::Vec;

/// Bytes of the tokens `0` to `9`, and the number of tokens before and after them.
const DIGITS: &[u8; 20] = b"0\x001\x002\x003\x004\x005\x006\x007\x008\x009\0";
const TOKENS: usize = 256;
const FIRST_DIGIT: usize = b'0' as usize;
/// Maximum number of symbols, and of bytes of a name. Linux's own limit of the latter is 512.
const MAX_SYMBOLS: usize = 1 << 20;
const MAX_NAME_BYTES: usize = 1024;
/// Bytes of a name on average, rounded up.
const NAME_BYTES: usize = 32;
/// Maximum bytes of all names: more do not fit into a profile.
const MAX_NAMES_BYTES: usize = crate::profile::MAX_PROFILE_BYTES;
/// Symbols per marker, and the maximum bytes of their names.
const BLOCK: usize = 256;
const MAX_BLOCK_BYTES: usize = BLOCK * 512;
/// Maximum number of positions that are looked at for tokens, and for names.
const MAX_DIGITS: usize = 64;
const MAX_TRIES: usize = 8;

/// A symbol of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageSymbol<'a> {
    /// Address that the linker gave it.
    pub address: u64,
    /// Whether it moves with the kernel; offsets within per-CPU data do not.
    pub moves: bool,
    /// The type letter.
    pub kind: u8,
    /// The name.
    pub name: &'a str,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    address: u64,
    moves: bool,
    kind: u8,
    /// End of its name in all names.
    end: usize,
}

/// All symbols of an image.
#[derive(Clone, Debug)]
pub struct SymbolTable {
    base: u64,
    names: String,
    entries: Vec<Entry>,
}

impl SymbolTable {
    /// Reads the table of `vmlinux`, the unpacked payload of a bzImage, of the same build as the kernel with `notes`.
    ///
    /// # Errors
    ///
    /// It is no such image or of another build, or its table is not found.
    pub fn read(vmlinux: &[u8], notes: &[u8]) -> Result<Self, ProfileError> {
        let running = build_id(notes).ok_or(unusable("the running kernel has no build ID"))?;
        let elf = Elf::parse(vmlinux)?;
        let (segments, _) = elf.segments()?;
        if elf.build_id() != Some(running) {
            return Err(unusable("its build ID differs from that of the kernel in memory"));
        }
        let base = segments.iter().map(|segment| segment.address).min();
        let base = base.ok_or(unusable("it has no loadable segment"))?;
        let found =
            segments.iter().filter(|segment| segment.address % 8 == 0).find_map(|segment| {
                Area(vmlinux.get(segment.file.clone()).unwrap_or_default()).table(base)
            });
        found.ok_or(unusable("it has no symbol table of a known form"))
    }

    /// The address that the linker gave the image's first byte.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The symbols that have a name, in the order of `/proc/kallsyms`.
    pub fn symbols(&self) -> impl Iterator<Item = ImageSymbol<'_>> {
        self.entries.iter().scan(0, |start, entry| {
            let name = self.names.get(*start..entry.end).unwrap_or_default();
            *start = entry.end;
            Some(ImageSymbol { address: entry.address, moves: entry.moves, kind: entry.kind, name })
        })
    }
}

/// The address of `_text` in the head of `/proc/kcore`, an ELF file with a segment for the kernel's image of
/// `image_bytes` (Linux, `fs/proc/kcore.c`).
pub fn text_start(kcore: &[u8], image_bytes: u64) -> Option<u64> {
    kernel_segment(kcore, image_bytes)
}

/// Bytes of the file that begin at a multiple of 8 in memory.
struct Area<'a>(&'a [u8]);

/// Position and number of the symbols' parts.
struct Parts {
    names: usize,
    count: usize,
    offsets: usize,
}

impl<'a> Area<'a> {
    fn word(&self, at: usize) -> Option<u32> {
        self.0.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn wide(&self, at: usize) -> Option<u64> {
        self.0.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn table(&self, base: u64) -> Option<SymbolTable> {
        let tokens = self.digits().take(MAX_DIGITS).filter_map(|digits| self.tokens(digits));
        tokens.take(MAX_TRIES).find_map(|tokens| {
            let old = || self.offsets_first(&tokens, base);
            let parts = self.offsets_last(&tokens, base).or_else(old)?;
            self.read_symbols(&tokens, &parts, base)
        })
    }

    /// Positions of the digits' tokens. Each of them has four aligned bytes within 16 bytes: two digits and two zeros.
    fn digits(&self) -> impl Iterator<Item = usize> + '_ {
        let aligned = self.0.chunks_exact(16).enumerate();
        aligned.filter_map(|(number, chunk)| {
            let [a, b, c, d] = *chunk.first_chunk()?;
            let (digit, back) = match (b, d) {
                (0, 0) if a.checked_add(1) == Some(c) => (a, 0),
                _ if a == 0 && c == 0 && b.checked_add(1) == Some(d) => (b, 1),
                _ => return None,
            };
            let before = 2 * usize::from(digit.checked_sub(b'0').filter(|digit| *digit < 9)?);
            let at = (16 * number + back).checked_sub(before)?;
            self.0.get(at..)?.starts_with(DIGITS).then_some(at)
        })
    }

    /// The tokens, if those of the digits are at `digits`.
    fn tokens(&self, digits: usize) -> Option<Tokens<'a>> {
        let mut end = digits;
        for _ in FIRST_DIGIT..TOKENS {
            let rest = self.0.get(end..)?;
            end += rest.iter().take(MAX_NAME_BYTES).position(|byte| *byte == 0)? + 1;
        }
        let index = end.next_multiple_of(8);
        let place = |number: usize| {
            let bytes = self.0.get(index + 2 * number..)?.first_chunk()?;
            Some(usize::from(u16::from_le_bytes(*bytes)))
        };
        let start = digits.checked_sub(place(FIRST_DIGIT)?)?;
        let mut next = 0;
        let mut texts = Vec::with_capacity(TOKENS);
        for number in 0..TOKENS {
            let text = self.0.get(start + next..)?;
            let text = text.get(..text.iter().take(MAX_NAME_BYTES).position(|byte| *byte == 0)?)?;
            if place(number)? != next || !text.iter().all(u8::is_ascii_graphic) {
                return None;
            }
            next += text.len() + 1;
            texts.push(text);
        }
        let aligned = start % 8 == 0 && start + next == end;
        aligned.then_some(Tokens { texts, start, end: index + 2 * TOKENS })
    }

    /// The parts in the order since Linux 6.4.
    fn offsets_last(&self, tokens: &Tokens<'_>, base: u64) -> Option<Parts> {
        let offsets = tokens.end;
        let pairs =
            (0..MAX_SYMBOLS / 2).find(|pair| self.wide(offsets + 8 * pair) == Some(base))?;
        // The last pair may be one symbol and a gap.
        [2 * pairs, (2 * pairs).checked_sub(1)?].into_iter().find_map(|count| {
            let markers = tokens.start.checked_sub(markers_bytes(count))?;
            let last = self.word(markers + 4 * (count.div_ceil(BLOCK).checked_sub(1)?))?;
            let latest = markers.checked_sub(usize::try_from(last).ok()?)? / 8 * 8;
            let names = (0..MAX_BLOCK_BYTES / 8).map_while(|step| latest.checked_sub(8 * step));
            let counted = |names: &usize| {
                names.checked_sub(8).is_some_and(|at| self.wide(at) == Some(count as u64))
            };
            let fits = |names: &usize| self.markers(*names, count) == Some(markers);
            let names = names.filter(counted).take(MAX_TRIES).find(fits)?;
            Some(Parts { names, count, offsets })
        })
    }

    /// The parts in the order up to Linux 6.3.
    fn offsets_first(&self, tokens: &Tokens<'_>, base: u64) -> Option<Parts> {
        let before = self.0.get(..tokens.start)?.chunks_exact(8).enumerate().rev();
        let bases = before.filter(|(_, bytes)| **bytes == base.to_le_bytes());
        bases.take(MAX_TRIES).find_map(|(number, _)| {
            let at = 8 * number;
            let count = usize::try_from(self.wide(at + 8)?).ok()?;
            let count = Some(count).filter(|count| (1..=MAX_SYMBOLS).contains(count))?;
            let offsets = at.checked_sub((4 * count).next_multiple_of(8))?;
            let names = at + 16;
            let end = self.markers(names, count)? + markers_bytes(count);
            let ends = [end, end + (3 * count).next_multiple_of(8)];
            ends.contains(&tokens.start).then_some(Parts { names, count, offsets })
        })
    }

    /// The position of the markers, which agree with the `count` names at `names`.
    fn markers(&self, names: usize, count: usize) -> Option<usize> {
        let mut at = names;
        let mut starts = Vec::with_capacity(count.min(MAX_SYMBOLS).div_ceil(BLOCK));
        for number in 0..count {
            if number % BLOCK == 0 {
                starts.push(u32::try_from(at - names).ok()?);
            }
            let (length, tokens) = self.length(at)?;
            at = tokens + length;
        }
        let markers = at.next_multiple_of(8);
        let agree = (0..).zip(&starts).all(|(i, at)| self.word(markers + 4 * i) == Some(*at));
        agree.then_some(markers)
    }

    /// The number of tokens of the name at `at`, and their position.
    fn length(&self, at: usize) -> Option<(usize, usize)> {
        let first = usize::from(*self.0.get(at)?);
        if first & 0x80 == 0 {
            return Some((first, at + 1));
        }
        Some((first & 0x7f | usize::from(*self.0.get(at + 1)?) << 7, at + 2))
    }

    fn read_symbols(&self, tokens: &Tokens<'_>, parts: &Parts, base: u64) -> Option<SymbolTable> {
        let offsets = self.0.get(parts.offsets..)?.get(..4 * parts.count)?.chunks_exact(4);
        let offsets = offsets.map(|b| b.first_chunk().map_or(0, |b| i32::from_le_bytes(*b)));
        let all_count_from_base = offsets.clone().all(|offset| offset >= 0);
        let mut names = Vec::with_capacity(NAME_BYTES * parts.count);
        let mut has_text = false;
        let mut entries = Vec::with_capacity(parts.count);
        let mut at = parts.names;
        for offset in offsets {
            let (length, first) = self.length(at)?;
            at = first + length;
            let start = names.len();
            for token in self.0.get(first..at)? {
                names.extend_from_slice(tokens.texts.get(usize::from(*token))?);
                if names.len() - start > MAX_NAME_BYTES || names.len() > MAX_NAMES_BYTES {
                    return None;
                }
            }
            // The first letter is the type. Linux lists no symbol without a name.
            if names.len() < start + 2 {
                names.truncate(start);
                continue;
            }
            let kind = names.remove(start);
            let moves = offset < 0 || all_count_from_base;
            let address = match (moves, all_count_from_base) {
                (false, _) => u64::from(offset.unsigned_abs()),
                (true, true) => base.checked_add(u64::from(offset.unsigned_abs()))?,
                (true, false) => base.checked_add(u64::from(offset.unsigned_abs()) - 1)?,
            };
            has_text |= address == base && names.get(start..) == Some(b"_text");
            entries.push(Entry { address, moves, kind, end: names.len() });
        }
        let names = String::from_utf8(names).ok()?;
        has_text.then_some(SymbolTable { base, names, entries })
    }
}

/// The 256 tokens, and the bounds of their table and index.
struct Tokens<'a> {
    texts: Vec<&'a [u8]>,
    start: usize,
    end: usize,
}

/// Bytes of the markers of `count` symbols.
fn markers_bytes(count: usize) -> usize {
    (4 * count.div_ceil(BLOCK)).next_multiple_of(8)
}

#[cfg(test)]
mod tests;
