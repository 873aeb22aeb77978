//! The symbols in a kernel's memory, as `/proc/kallsyms` would show them.
//!
//! Names are compressed: each is a length and so many numbers of tokens, and the first character is the symbol's type.
//! A length of 128 and more takes two bytes. Addresses are offsets. Source: Linux, `kernel/kallsyms.c` and
//! `scripts/kallsyms.c`.

use super::information::Information;
use anyhow::{ensure, Context, Result};
use std::fmt::Write;

/// Maximum number of symbols, and bytes of their names.
const MAX_SYMBOLS: u32 = 1 << 20;
const MAX_NAMES: u64 = 32 << 20;
/// Maximum bytes of a name, and of all lines.
const MAX_NAME: usize = 1024;
const MAX_LISTING: usize = 128 << 20;
const TOKENS: usize = 256;
/// The parts, as their symbols end.
const PARTS: [&str; 6] =
    ["num_syms", "names", "token_table", "token_index", "offsets", "relative_base"];
/// Maximum bytes of all tokens.
const MAX_TOKENS: usize = 16 << 10;

/// The tables.
pub struct Tables {
    names: Vec<u8>,
    tokens: Vec<u8>,
    token_places: Vec<u8>,
    offsets: Vec<u8>,
    base: u64,
}

impl Tables {
    /// Whether `information` names all of them.
    pub fn are_named(information: &Information) -> bool {
        PARTS.iter().all(|part| information.symbol(&format!("kallsyms_{part}")).is_ok())
    }

    /// Reads the tables that `information` names. `read` gives the bytes at an address of the kernel's image.
    ///
    /// # Errors
    ///
    /// A table is missing, or has an impossible size.
    pub fn read(
        information: &Information,
        read: impl Fn(u64, usize) -> Result<Vec<u8>>,
    ) -> Result<Self> {
        let at = |name: &str| information.symbol(&format!("kallsyms_{name}"));
        let count =
            read(at("num_syms")?, 4)?.first_chunk().map_or(0, |count| u32::from_le_bytes(*count));
        ensure!(
            (1..=MAX_SYMBOLS).contains(&count),
            "the kernel's table of symbols has {count} entries"
        );
        let (names, tokens) = (at("names")?, at("token_table")?);
        let bytes = tokens.wrapping_sub(names);
        ensure!(bytes <= MAX_NAMES, "the kernel's table of names has {bytes} bytes");
        let base = read(at("relative_base")?, 8)?;
        Ok(Self {
            names: read(names, bytes as usize)?,
            tokens: read(tokens, MAX_TOKENS)?,
            token_places: read(at("token_index")?, 2 * TOKENS)?,
            offsets: read(at("offsets")?, 4 * count as usize)?,
            base: base.first_chunk().map_or(0, |base| u64::from_le_bytes(*base)),
        })
    }

    /// The lines of `/proc/kallsyms`.
    ///
    /// # Errors
    ///
    /// The names end before the offsets.
    pub fn listing(&self) -> Result<String> {
        let offsets = || self.offsets.chunks_exact(4).filter_map(|part| part.first_chunk());
        // Either every offset counts from the base, or positive ones are addresses, such as those of per-CPU data.
        let has_absolute = offsets().any(|offset| i32::from_le_bytes(*offset) < 0);
        let mut rest = self.names.as_slice();
        let mut listing = String::new();
        for offset in offsets().copied() {
            let (name, behind) =
                self.name(rest).context("the kernel's table of names is damaged")?;
            rest = behind;
            let kind = name.chars().next().context("a symbol of the kernel has no name")?;
            let address = match i32::from_le_bytes(offset) {
                offset if !has_absolute => self.base.wrapping_add(u64::from(offset as u32)),
                offset if offset >= 0 => offset as u64,
                offset => self.base.wrapping_sub(1).wrapping_add(offset.unsigned_abs().into()),
            };
            writeln!(listing, "{address:016x} {kind} {}", &name[kind.len_utf8()..])?;
            ensure!(listing.len() <= MAX_LISTING, "the kernel's symbols are too long");
        }
        Ok(listing)
    }

    /// The first of `names` with its type, and the names behind it.
    fn name<'n>(&self, names: &'n [u8]) -> Option<(String, &'n [u8])> {
        let (&first, mut rest) = names.split_first()?;
        let mut length = usize::from(first & 0x7f);
        if first & 0x80 != 0 {
            let (&high, behind) = rest.split_first()?;
            length |= usize::from(high) << 7;
            rest = behind;
        }
        let (numbers, behind) = rest.split_at_checked(length)?;
        let mut name = String::new();
        for number in numbers {
            let place = self.token_places.get(2 * usize::from(*number)..)?.first_chunk()?;
            let token = self.tokens.get(usize::from(u16::from_le_bytes(*place))..)?;
            let end = token.iter().position(|byte| *byte == 0)?;
            // Names are printed.
            let shown = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { '?' };
            name.extend(token[..end].iter().map(shown));
            if name.len() > MAX_NAME {
                return None;
            }
        }
        Some((name, behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens 0 to 3: "T", "_text", "D", "cpu".
    fn tables(offsets: [i32; 2]) -> Tables {
        let long: Vec<u8> = [0x81, 1].into_iter().chain([2; 129]).collect();
        let mut token_places = vec![0; 2 * TOKENS];
        for (number, place) in [0u16, 2, 8, 10].into_iter().enumerate() {
            token_places[2 * number..][..2].copy_from_slice(&place.to_le_bytes());
        }
        Tables {
            names: [&[2, 0, 1][..], &long].concat(),
            tokens: b"T\0_text\0D\0cpu\0".to_vec(),
            token_places,
            offsets: offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect(),
            base: 0xffff_ffff_8100_0000,
        }
    }

    #[test]
    fn names_are_unpacked() {
        let long = "D".repeat(128);
        let expected = format!("ffffffff81000000 T _text\n0000000000005000 D {long}\n");
        assert_eq!(tables([-1, 0x5000]).listing().unwrap(), expected);
        let expected = format!("ffffffff81000000 T _text\nffffffff81005000 D {long}\n");
        assert_eq!(tables([0, 0x5000]).listing().unwrap(), expected);
    }

    #[test]
    fn damaged_tables_are_errors() {
        let whole = tables([0, 1]);
        for end in 0..whole.names.len() {
            let cut = Tables { names: whole.names[..end].to_vec(), ..tables([0, 1]) };
            assert!(cut.listing().is_err(), "{end}");
        }
        assert!(Tables { tokens: b"T".to_vec(), ..tables([0, 1]) }.listing().is_err());
        assert!(Tables { token_places: vec![0xff; 512], ..tables([0, 1]) }.listing().is_err());
    }
}
