//! How a profile lies in its bytes.
//!
//! The header is 17 words: magic, version, `_text`, `_end`, physical `_text`, then offset and number of elements (32 bits
//! each) of twelve sections. The sections may lie anywhere behind it.

use super::{rule, ProfileError, MAX_PROFILE_BYTES};
use alloc::vec::Vec;

/// First word: "KYOPROF" and a byte that no text file has.
const MAGIC: u64 = u64::from_le_bytes(*b"KYOPROF\x1a");
/// Raised with every change of the format or of what a profile must hold.
const VERSION: u64 = 2;
/// How many sections there are.
pub const SECTIONS: usize = 12;
/// Bytes of the header.
const HEADER_BYTES: usize = 8 * (5 + SECTIONS);

/// A run of elements.
#[derive(Clone, Copy, Debug, Default)]
pub struct Section {
    /// Bytes from the profile's beginning.
    pub offset: usize,
    /// Elements.
    pub count: usize,
}

/// The header, all of whose sections are inside the bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Header {
    /// Virtual address of `_text`.
    pub text: u64,
    /// Virtual address of `_end`.
    pub end: u64,
    /// Physical address of `_text`.
    pub text_physical: u64,
    /// 64 bits each: addresses of symbols, ascending.
    pub addresses: Section,
    /// 32 bits each: where the name of each symbol begins in `names`, and where the last one ends.
    pub name_ends: Section,
    /// Bytes: what kind of symbol.
    pub kinds: Section,
    /// 32 bits each: numbers of symbols, sorted by name and then by number.
    pub by_name: Section,
    /// Bytes: names of symbols.
    pub names: Section,
    /// Three words each, sorted by key: key (offset in `keys`, length: 32 bits each), value, bytes.
    pub layouts: Section,
    /// Bytes: `structure.member`, `structure`, `#CONSTANT`.
    pub keys: Section,
    /// Bytes: the kernel's release.
    pub release: Section,
    /// 64 bits each: the key of the fingerprints; two, or none where there are no fingerprints.
    pub fingerprint_key: Section,
    /// Two words each, sorted: address and end of a range of which there are fingerprints.
    pub covered: Section,
    /// 32 bits each: the fingerprint of each chunk of these ranges.
    pub fingerprints: Section,
    /// Four bytes each: gap (16 bits), bytes, kind of what is masked in them.
    pub masks: Section,
}

impl Header {
    /// Sections in the order of the header, with the bytes of one element.
    fn sections(&mut self) -> [(&mut Section, usize); SECTIONS] {
        [
            (&mut self.addresses, 8),
            (&mut self.name_ends, 4),
            (&mut self.kinds, 1),
            (&mut self.by_name, 4),
            (&mut self.names, 1),
            (&mut self.layouts, 24),
            (&mut self.keys, 1),
            (&mut self.release, 1),
            (&mut self.fingerprint_key, 8),
            (&mut self.covered, 16),
            (&mut self.fingerprints, 4),
            (&mut self.masks, 4),
        ]
    }

    /// The sections of the fingerprints: key, ranges, fingerprints, masks.
    pub fn fingerprints(&self) -> [Section; 4] {
        [self.fingerprint_key, self.covered, self.fingerprints, self.masks]
    }

    /// Reads the header and checks that every section is inside.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProfileError> {
        rule(bytes.len() <= MAX_PROFILE_BYTES, "it is too long")?;
        rule(bytes.len() >= HEADER_BYTES, "it is too short")?;
        let word = |at: usize| bytes[8 * at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        rule(word(0) == MAGIC, "it does not begin as one")?;
        rule(word(1) == VERSION, "its version is another")?;
        let mut header =
            Self { text: word(2), end: word(3), text_physical: word(4), ..Self::default() };
        rule(
            header.text < header.end && header.end - header.text <= 1 << 30,
            "the image has no sensible size",
        )?;
        rule(
            header.text % 4096 == 0 && header.text_physical % 4096 == 0,
            "the image is not on a page",
        )?;
        rule(header.text_physical < 1 << 52, "the image lies beyond physical memory")?;
        for (at, (section, element)) in header.sections().into_iter().enumerate() {
            let place = word(5 + at);
            *section = Section { offset: place as u32 as usize, count: (place >> 32) as usize };
            let end = section
                .count
                .checked_mul(element)
                .and_then(|length| length.checked_add(section.offset));
            rule(end.is_some_and(|end| end <= bytes.len()), "a section is outside")?;
        }
        Ok(header)
    }

    /// The whole profile; `parts` are the sections' bytes in the order of the header. Counts and places are set here.
    pub fn encode(mut self, parts: [Vec<u8>; SECTIONS]) -> Result<Vec<u8>, ProfileError> {
        let total = HEADER_BYTES + parts.iter().map(Vec::len).sum::<usize>();
        rule(total <= MAX_PROFILE_BYTES, "it is too long")?;
        let mut bytes = Vec::with_capacity(total);
        for word in [MAGIC, VERSION, self.text, self.end, self.text_physical] {
            bytes.extend(word.to_le_bytes());
        }
        let mut offset = HEADER_BYTES;
        for ((_, element), part) in self.sections().into_iter().zip(&parts) {
            bytes.extend((offset as u32).to_le_bytes());
            bytes.extend(((part.len() / element) as u32).to_le_bytes());
            offset += part.len();
        }
        parts.iter().for_each(|part| bytes.extend(part));
        Ok(bytes)
    }
}
