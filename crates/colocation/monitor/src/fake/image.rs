//! Unpacked kernel images, for the tests of this crate and of the command.

use std::iter::repeat_n;
use std::vec;
use std::vec::Vec;

/// A build ID.
pub const BUILD: [u8; 20] = [7; 20];

/// Notes: another one, then the one with the build ID.
pub fn note(build: [u8; 20]) -> Vec<u8> {
    let other = [6, 3, 1, 0x61_6c_6c_61, 0x73, 0xff_ff_ff];
    let words = other.into_iter().chain([4, 20, 3, u32::from_le_bytes(*b"GNU\0")]);
    words.flat_map(u32::to_le_bytes).chain(build).collect()
}

/// An ELF file with `bytes` at address `linked` and a build ID, followed by relocation `tables`.
pub fn vmlinux(linked: u64, bytes: &[u8], tables: &[&[u64]]) -> Vec<u8> {
    let note = note(BUILD);
    let start = 64 + 2 * 56;
    let behind = start + note.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(32, 0);
    file.extend([64, 0].iter().flat_map(|word: &u64| word.to_le_bytes()));
    file.extend([0, 0, 64, 56, 2, 64, 0, 0].iter().flat_map(|half: &u16| half.to_le_bytes()));
    for (kind, offset, address, bytes) in
        [(4u64, start, 0, note.len()), (1, behind, linked, bytes.len())]
    {
        let words = [kind, offset, address, address, bytes as u64, bytes as u64, 4];
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    file.extend(note);
    file.extend(bytes);
    for table in tables {
        file.extend([0; 4]);
        file.extend(table.iter().flat_map(|&at| (at as u32).to_le_bytes()));
    }
    file
}

/// The order of a symbol table's objects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// Up to Linux 6.3, without the order by name.
    Old,
    /// The same with it.
    OldSorted,
    /// Since Linux 6.4.
    New,
    /// Since Linux 6.15: every offset counts from the base.
    NewFromBase,
}

/// Offset from the base, or from 0 if it does not move; type letter; name.
pub type TableSymbol<'a> = (u32, bool, u8, &'a str);

/// Pieces of names with a token of their own.
const PIECES: [(u8, &str); 4] = [(1, "init_"), (2, "_task"), (200, "lock"), (255, "__")];

/// A symbol table for an image at `base`, after some other bytes.
pub fn symbol_table(base: u64, symbols: &[TableSymbol<'_>], order: Order) -> Vec<u8> {
    let mut names = Vec::new();
    let mut markers = Vec::new();
    for (number, (.., kind, name)) in symbols.iter().enumerate() {
        if number % 256 == 0 {
            markers.extend((names.len() as u32).to_le_bytes());
        }
        let tokens = tokens_of(*kind, name);
        match tokens.len() {
            length @ 0..0x80 => names.push(length as u8),
            length => names.extend([(length & 0x7f | 0x80) as u8, (length >> 7) as u8]),
        }
        names.extend(tokens);
    }
    let count = (symbols.len() as u32).to_le_bytes().to_vec();
    let offsets = symbols.iter().flat_map(|(offset, moves, ..)| {
        let offset = *offset as i32;
        let stored = if *moves && order != Order::NewFromBase { -1 - offset } else { offset };
        stored.to_le_bytes()
    });
    let (offsets, base) = (offsets.collect(), base.to_le_bytes().to_vec());
    let [tokens, index] = token_parts();
    let sorted = vec![1; 3 * symbols.len()];
    let parts = match order {
        Order::Old => vec![offsets, base, count, names, markers, tokens, index],
        Order::OldSorted => vec![offsets, base, count, names, markers, sorted, tokens, index],
        _ => vec![count, names, markers, tokens, index, offsets, base, sorted],
    };
    // Digits that are no tokens, and a value like the base.
    let mut bytes: Vec<u8> = DIGITS.iter().chain(&[0xff; 6]).chain(&parts[0]).copied().collect();
    bytes.truncate(64);
    for part in parts {
        bytes.extend(repeat_n(0, bytes.len().next_multiple_of(8) - bytes.len()));
        bytes.extend(part);
    }
    bytes.extend([0x55; 40]);
    bytes
}

const DIGITS: &[u8] = b"0\x001\x002\x003\x004\x005\x006\x007\x008\x009\0";

/// The token numbers of a symbol.
fn tokens_of(kind: u8, name: &str) -> Vec<u8> {
    let mut tokens = vec![kind];
    let mut rest = name;
    while let Some(first) = rest.bytes().next() {
        let piece =
            PIECES.iter().find_map(|(token, text)| Some((*token, rest.strip_prefix(text)?)));
        let (token, behind) = piece.unwrap_or((first, &rest[1..]));
        tokens.push(token);
        rest = behind;
    }
    tokens
}

fn token_parts() -> [Vec<u8>; 2] {
    let (mut table, mut index) = (Vec::new(), Vec::new());
    for token in 0..=255u8 {
        index.extend((table.len() as u16).to_le_bytes());
        match PIECES.iter().find(|(piece, _)| *piece == token) {
            Some((_, text)) => table.extend(text.bytes()),
            None if token.is_ascii_graphic() => table.push(token),
            None => table.extend(b".unused"),
        }
        table.push(0);
    }
    [table, index]
}
