//! Parsers of `/proc/kallsyms` and `/proc/iomem`.

use super::build::{IOMEM, KALLSYMS};
use super::ProfileError;
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes of a line before the name: 16 digits, the type letter, and a space behind each.
pub const HEAD_BYTES: usize = 19;

/// A line of `/proc/kallsyms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SymbolLine<'a> {
    /// Virtual address.
    pub address: u64,
    /// The type letter.
    pub kind: u8,
    /// The name.
    pub name: &'a str,
}

/// The symbols of the core kernel, without those of modules, in the order of `text`. At least one has an address.
pub fn symbols(text: &str) -> Result<Vec<SymbolLine<'_>>, ProfileError> {
    let symbols = lines(text)?;
    if symbols.iter().all(|symbol| symbol.address == 0) {
        return Err(ProfileError::Hidden(KALLSYMS));
    }
    Ok(symbols)
}

/// The same, even if there is none or none has an address.
pub fn lines(text: &str) -> Result<Vec<SymbolLine<'_>>, ProfileError> {
    let mut symbols = Vec::new();
    for line in text.lines() {
        let symbol = match usual(line) {
            Some(symbol) => Some(symbol),
            None => any(line)?,
        };
        symbols.extend(symbol);
    }
    Ok(symbols)
}

/// The symbol in `line` if that is as Linux writes one of the core kernel: nearly all are, and this costs less.
fn usual(line: &str) -> Option<SymbolLine<'_>> {
    let (digits, rest) = line.as_bytes().split_first_chunk::<16>()?;
    let [b' ', kind @ b'!'..=b'~', b' ', name @ ..] = rest else { return None };
    let mut address = 0;
    for digit in digits {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        address = address << 4 | u64::from(value);
    }
    let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
    let name = is_name.then(|| line.get(HEAD_BYTES..))??;
    Some(SymbolLine { address, kind: *kind, name })
}

/// The symbol in `line`, whatever lies between the words; `None` if it is none of the core kernel.
fn any(line: &str) -> Result<Option<SymbolLine<'_>>, ProfileError> {
    let mut words = line.split_ascii_whitespace();
    let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
        return Err(ProfileError::Kallsyms("a line is not \"address type name\""));
    };
    // A fourth word is the module in brackets, or `[bpf]` or `[ftrace]`: not part of the core kernel.
    if words.next().is_some() {
        return Ok(None);
    }
    let address = u64::from_str_radix(address, 16)
        .map_err(|_| ProfileError::Kallsyms("an address is not hexadecimal"))?;
    match kind.as_bytes() {
        [letter] if name.is_ascii() => Ok(Some(SymbolLine { address, kind: *letter, name })),
        _ => Err(ProfileError::Kallsyms("a type is not one letter, or a name is not ASCII")),
    }
}

/// Sorts by address. Of several names for one, the global one comes first.
pub fn sort(symbols: &mut [SymbolLine<'_>]) {
    // They nearly are: this is one look at each.
    symbols.sort_by_key(|symbol| symbol.address);
    for same in symbols.chunk_by_mut(|a, b| a.address == b.address) {
        same.sort_by_key(|symbol| (symbol.kind.is_ascii_lowercase(), symbol.name));
    }
}

/// Symbols that are sorted by address, with their order by name.
pub struct SymbolNames<'a> {
    pub symbols: &'a [SymbolLine<'a>],
    /// Indices of the symbols, by name and then by index.
    pub by_name: Vec<u32>,
}

impl<'a> SymbolNames<'a> {
    pub fn new(symbols: &'a [SymbolLine<'a>]) -> Self {
        let keys = symbols.iter().zip(0..).map(|(symbol, at)| (head(symbol.name), at));
        let mut sorted: Vec<(u128, u32)> = keys.collect();
        let name = |at: u32| symbols.get(at as usize).map(|symbol| symbol.name);
        sorted.sort_unstable_by(|(a_head, a), (b_head, b)| {
            a_head.cmp(b_head).then_with(|| (name(*a), a).cmp(&(name(*b), b)))
        });
        Self { symbols, by_name: sorted.into_iter().map(|(_, at)| at).collect() }
    }

    /// The lowest address of a symbol called `name`.
    pub fn get(&self, name: &str) -> Option<u64> {
        let symbol = self.from(name).next()?;
        (symbol.name == name).then_some(symbol.address)
    }

    pub fn range(&self, start: &str, end: &str) -> Option<Range<u64>> {
        Some(self.get(start)?..self.get(end)?)
    }

    /// Address and rest of the name of each symbol that begins with `prefix`, by name.
    pub fn with_prefix<'s>(&'s self, prefix: &'s str) -> impl Iterator<Item = (u64, &'a str)> + 's {
        let rest = move |symbol: &SymbolLine<'a>| {
            Some((symbol.address, symbol.name.strip_prefix(prefix)?))
        };
        self.from(prefix).map_while(rest)
    }

    /// The symbols from `name` on, by name.
    fn from(&self, name: &str) -> impl Iterator<Item = &'a SymbolLine<'a>> + '_ {
        let symbol = |at: &u32| self.symbols.get(*at as usize);
        let is_before = |at: &u32| symbol(at).is_some_and(|symbol| symbol.name < name);
        let from = self.by_name.partition_point(is_before);
        self.by_name.iter().skip(from).filter_map(symbol)
    }
}

/// The first bytes of a name, in its order: they decide nearly every comparison, and are compared at once.
fn head(name: &str) -> u128 {
    let mut bytes = [0; 16];
    let length = name.len().min(bytes.len());
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    u128::from_be_bytes(bytes)
}

/// The physical address of `_text`: the start of the kernel code in `/proc/iomem`.
pub fn code_start(text: &str) -> Result<u64, ProfileError> {
    let line = text.lines().find(|line| line.ends_with(": Kernel code"));
    let line = line.ok_or(ProfileError::Iomem("it has no line \"Kernel code\""))?;
    let start = line.trim_start().split('-').next().unwrap_or_default();
    match u64::from_str_radix(start, 16) {
        Ok(0) => Err(ProfileError::Hidden(IOMEM)),
        Ok(start) => Ok(start),
        Err(_) => Err(ProfileError::Iomem("an address is not hexadecimal")),
    }
}
