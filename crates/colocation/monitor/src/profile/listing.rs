//! Parsers of `/proc/kallsyms` and `/proc/iomem`.

use super::build::{IOMEM, KALLSYMS};
use super::ProfileError;
use alloc::vec::Vec;

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
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next())
        else {
            return Err(ProfileError::Kallsyms("a line is not \"address type name\""));
        };
        // A fourth word is the module in brackets, or `[bpf]` or `[ftrace]`: not part of the core kernel.
        if words.next().is_some() {
            continue;
        }
        let address = u64::from_str_radix(address, 16)
            .map_err(|_| ProfileError::Kallsyms("an address is not hexadecimal"))?;
        let kind = match kind.as_bytes() {
            [letter] if name.is_ascii() => *letter,
            _ => {
                return Err(ProfileError::Kallsyms(
                    "a type is not one letter, or a name is not ASCII",
                ))
            }
        };
        symbols.push(SymbolLine { address, kind, name });
    }
    Ok(symbols)
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
