//! Finds what `/proc/kallsyms` hides or forges, and takes it from the kernel's image.
//!
//! An unfiltered listing begins with the image's symbol table, in the table's order, at addresses that all moved by the
//! same number of bytes.

use super::build::KALLSYMS;
use super::listing::{self, SymbolLine, HEAD_BYTES};
use super::{ProfileError, SymbolTable};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

/// The kernel moves by whole pages.
const PAGE: u64 = 4096;

/// Symbols of one kind: their number, and the first one's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Number of symbols.
    pub count: usize,
    /// The first of them in name order.
    pub example: String,
}

impl Counted {
    fn add(&mut self, count: usize, name: &str) {
        if self.count == 0 && count > 0 {
            self.example = name.into();
        }
        self.count += count;
    }
}

/// What differs between `/proc/kallsyms` and the kernel's image. Its text says so in one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filtered {
    /// Symbols that are missing, or have no address.
    pub hidden: Counted,
    /// Symbols with another address or type.
    pub forged: Counted,
    /// Symbols that the image lacks.
    pub added: Counted,
    /// The listing of the core kernel's symbols as it should be.
    pub listing: String,
}

impl fmt::Display for Filtered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (&self.hidden, "hides", "that the kernel's image has"),
            (&self.forged, "shows another address or type of", "than the kernel's image"),
            (&self.added, "shows", "that the kernel's image lacks"),
        ];
        f.write_str(KALLSYMS)?;
        let some = parts.iter().filter(|(counted, ..)| counted.count > 0);
        for (number, (Counted { count, example }, does, which)) in some.enumerate() {
            let and = if number > 0 { " and" } else { "" };
            let plural = if *count > 1 { "s" } else { "" };
            write!(f, "{and} {does} {count} symbol{plural} {which}, for example {example}")?;
        }
        f.write_str(": something filters it; the symbols were taken from the image")
    }
}

/// Compares the text of `/proc/kallsyms` with the image's symbols; `None` if nothing differs.
///
/// How far the kernel moved is what most of the shown symbols say. If fewer than a quarter of the image's symbols agree
/// on it, `text` is called with the image's size in bytes, for the address of `_text`.
///
/// # Errors
///
/// The listing is malformed, or [`ProfileError::Hidden`] if nothing says how far the kernel moved.
pub fn compare(
    table: &SymbolTable,
    kallsyms: &str,
    text: impl FnOnce(u64) -> Option<u64>,
) -> Result<Option<Filtered>, ProfileError> {
    let mut expected = Expected { table, moved: 0 };
    if let Some(address) = shown_text(kallsyms) {
        expected.moved = address.wrapping_sub(table.base());
        if expected.is_shown_by(kallsyms) {
            return Ok(None);
        }
    }
    let mut shown = listing::lines(kallsyms)?;
    let by_name = |lines: &mut Vec<SymbolLine<'_>>| {
        lines.sort_unstable_by_key(|line| (line.name, line.address, line.kind));
    };
    by_name(&mut shown);
    expected.moved = match most_common_move(&expected, &shown) {
        Some(moved) => moved,
        None => {
            let bytes = expected.image_bytes().ok_or(ProfileError::Hidden(KALLSYMS))?;
            text(bytes).ok_or(ProfileError::Hidden(KALLSYMS))?.wrapping_sub(table.base())
        }
    };
    let mut wanted: Vec<SymbolLine<'_>> = expected.lines().collect();
    by_name(&mut wanted);
    let mut filtered = differences(&wanted, &shown);
    for line in expected.lines() {
        let (address, kind, name) = (line.address, char::from(line.kind), line.name);
        // Writing to a string does not fail.
        let _ = writeln!(filtered.listing, "{address:016x} {kind} {name}");
    }
    let differs = [&filtered.hidden, &filtered.forged, &filtered.added].map(|part| part.count > 0);
    Ok(differs.contains(&true).then_some(filtered))
}

/// The line before its name.
fn head_of(line: &SymbolLine<'_>) -> [u8; HEAD_BYTES] {
    let mut head = [b' '; HEAD_BYTES];
    for (digit, shift) in head.iter_mut().zip((0..64).step_by(4).rev()) {
        let value = (line.address >> shift) as u8 & 0xf;
        *digit = if value < 10 { b'0' + value } else { b'a' + value - 10 };
    }
    if let Some(kind) = head.get_mut(HEAD_BYTES - 2) {
        *kind = line.kind;
    }
    head
}

/// The address of `_text` in `kallsyms`.
fn shown_text(kallsyms: &str) -> Option<u64> {
    let line = kallsyms.lines().find(|line| line.ends_with(" _text"))?;
    u64::from_str_radix(line.split(' ').next()?, 16).ok().filter(|address| address % PAGE == 0)
}

/// The symbols of a kernel that moved.
struct Expected<'a> {
    table: &'a SymbolTable,
    moved: u64,
}

impl<'a> Expected<'a> {
    fn lines(&self) -> impl Iterator<Item = SymbolLine<'a>> {
        let moved = self.moved;
        self.table.symbols().map(move |symbol| SymbolLine {
            address: symbol.address.wrapping_add(if symbol.moves { moved } else { 0 }),
            kind: symbol.kind,
            name: symbol.name,
        })
    }

    /// Whether `kallsyms` has these lines, and after them only those of modules.
    fn is_shown_by(&self, kallsyms: &str) -> bool {
        let mut rest = kallsyms.as_bytes();
        for line in self.lines() {
            let Some((head, behind)) = rest.split_first_chunk::<HEAD_BYTES>() else { return false };
            let name = line.name.as_bytes();
            let Some((shown, [b'\n', behind @ ..])) = behind.split_at_checked(name.len()) else {
                return false;
            };
            if *head != head_of(&line) || shown != name {
                return false;
            }
            rest = behind;
        }
        let rest = core::str::from_utf8(rest).map(listing::lines);
        matches!(rest, Ok(Ok(lines)) if lines.is_empty())
    }

    fn image_bytes(&self) -> Option<u64> {
        let end = self.table.symbols().find(|symbol| symbol.name == "_end")?;
        end.address.checked_sub(self.table.base())
    }
}

/// The distance that most of the `shown` symbols moved, which are sorted by name; `None` if they are fewer than a
/// quarter of those that move. Names that occur more than once do not count.
fn most_common_move(expected: &Expected<'_>, shown: &[SymbolLine<'_>]) -> Option<u64> {
    let mut moves: BTreeMap<u64, usize> = BTreeMap::new();
    for symbol in expected.table.symbols().filter(|symbol| symbol.moves) {
        let at = shown.partition_point(|line| line.name < symbol.name);
        let mut same = shown.get(at..).unwrap_or_default().iter();
        let (Some(line), next) = (same.next(), same.next()) else { continue };
        let once = line.name == symbol.name && next.is_none_or(|next| next.name != symbol.name);
        let moved = line.address.wrapping_sub(symbol.address);
        if once && line.address != 0 && moved % PAGE == 0 {
            *moves.entry(moved).or_default() += 1;
        }
    }
    let all = expected.table.symbols().filter(|symbol| symbol.moves).count();
    let (moved, count) = moves.into_iter().max_by_key(|(_, count)| *count)?;
    (4 * count >= all).then_some(moved)
}

/// Compares two lists that are sorted by name.
fn differences(mut wanted: &[SymbolLine<'_>], mut shown: &[SymbolLine<'_>]) -> Filtered {
    let mut filtered = Filtered::default();
    loop {
        let name = match (wanted.first(), shown.first()) {
            (Some(a), Some(b)) => a.name.min(b.name),
            (Some(a), None) | (None, Some(a)) => a.name,
            (None, None) => return filtered,
        };
        let ours = take_called(&mut wanted, name);
        let theirs = take_called(&mut shown, name);
        if ours == theirs {
            continue;
        }
        let missing = ours.iter().filter(|line| !has(theirs, line)).count();
        let others = theirs.iter().filter(|line| !has(ours, line));
        let zero = others.clone().filter(|line| line.address == 0).count();
        let other = others.count() - zero;
        let forged = missing.min(other);
        filtered.hidden.add(missing - forged, name);
        filtered.forged.add(forged, name);
        filtered.added.add(other - forged + zero.saturating_sub(missing - forged), name);
    }
}

/// Whether `lines` of one name, which are sorted, have `wanted`.
fn has(lines: &[SymbolLine<'_>], wanted: &SymbolLine<'_>) -> bool {
    lines.binary_search_by_key(&(wanted.address, wanted.kind), |l| (l.address, l.kind)).is_ok()
}

/// Splits the lines called `name` off the beginning of `lines`.
fn take_called<'s, 'a>(lines: &mut &'s [SymbolLine<'a>], name: &str) -> &'s [SymbolLine<'a>] {
    let count = lines.iter().take_while(|line| line.name == name).count();
    let (first, rest) = lines.split_at(count);
    *lines = rest;
    first
}

#[cfg(test)]
mod tests;
