//! The encoding of a profile.
//!
//! The header is 17 words: magic, version, `_text`, `_end`, physical `_text`, then offset and element count (32 bits
//! each) of twelve sections. The sections may lie anywhere after the header.

use super::{rule, ProfileError, MAX_PROFILE_BYTES};
use alloc::vec::Vec;

/// The first word: "KYOPROF" and a byte that does not occur in text files.
const MAGIC: u64 = u64::from_le_bytes(*b"KYOPROF\x1a");
/// Increased with every change of the format or of the required contents.
const VERSION: u64 = 2;
/// Number of sections.
pub const SECTIONS: usize = 12;
/// Bytes of the header.
const HEADER_BYTES: usize = 8 * (5 + SECTIONS);

/// A sequence of elements.
#[derive(Clone, Copy, Debug, Default)]
pub struct Section {
    /// Byte offset from the start of the profile.
    pub offset: usize,
    /// Number of elements.
    pub count: usize,
}

/// The header. After decoding, all sections lie inside the profile.
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
    /// 32 bits each: the start of each symbol's name in `names`, and the end of the last one.
    pub name_ends: Section,
    /// Bytes: the kind of each symbol.
    pub kinds: Section,
    /// 32 bits each: symbol indices, sorted by name and then by index.
    pub by_name: Section,
    /// Bytes: names of symbols.
    pub names: Section,
    /// Three words each, sorted by key: key (offset in `keys`, length: 32 bits each), value, bytes.
    pub layouts: Section,
    /// Bytes: `structure.member`, `structure`, `#CONSTANT`.
    pub keys: Section,
    /// Bytes: the kernel's release.
    pub release: Section,
    /// 64 bits each: the key of the fingerprints; two, or none if there are no fingerprints.
    pub fingerprint_key: Section,
    /// Two words each, sorted: start and end address of a range with fingerprints.
    pub covered: Section,
    /// 32 bits each: the fingerprint of each chunk in these ranges.
    pub fingerprints: Section,
    /// Four bytes each: gap to the previous mask (16 bits), bytes, kind of mask.
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

    /// Reads the header and checks that every section lies inside `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProfileError> {
        rule(bytes.len() <= MAX_PROFILE_BYTES, "it is too long")?;
        rule(bytes.len() >= HEADER_BYTES, "it is too short")?;
        let word = |at: usize| bytes[8 * at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        rule(word(0) == MAGIC, "it does not begin with the magic word")?;
        rule(word(1) == VERSION, "it has another version")?;
        let mut header =
            Self { text: word(2), end: word(3), text_physical: word(4), ..Self::default() };
        rule(
            header.text < header.end && header.end - header.text <= 1 << 30,
            "the image's size is out of range",
        )?;
        rule(
            header.text.is_multiple_of(4096) && header.text_physical.is_multiple_of(4096),
            "the image is not page-aligned",
        )?;
        rule(header.text_physical < 1 << 52, "the image lies beyond physical memory")?;
        for (at, (section, element)) in header.sections().into_iter().enumerate() {
            let place = word(5 + at);
            *section = Section { offset: place as u32 as usize, count: (place >> 32) as usize };
            let end = section
                .count
                .checked_mul(element)
                .and_then(|length| length.checked_add(section.offset));
            rule(end.is_some_and(|end| end <= bytes.len()), "a section lies outside the profile")?;
        }
        Ok(header)
    }

    /// The whole profile. `parts` are the sections' bytes in header order; their offsets and counts are set here.
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
