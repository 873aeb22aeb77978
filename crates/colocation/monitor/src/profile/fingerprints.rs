//! Fingerprints of the code and read-only data in the kernel package's image, for a comparison at load.
//!
//! They cover address ranges, each a multiple of [`CHUNK`] bytes. The concatenation of the ranges gives each byte a
//! position. A chunk's [`fingerprint`] has zeros for the bytes that Linux patches at boot. Those bytes are the masks,
//! sorted by position; each is encoded by the gap to the previous one.
//!
//! The key is drawn when the profile is made, so earlier tampering cannot have been fitted to a fingerprint. That is
//! all that is asked of the hash: it is a universal one, which costs a tenth of a cryptographic one.

use super::format::Section;
use super::validate::all;
use super::{rule, Profile, ProfileError};
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes per fingerprint.
pub const CHUNK: usize = 64;
/// 64-bit words per fingerprint.
pub const CHUNK_WORDS: usize = CHUNK / 8;

/// An empty mask that bridges a gap of more than 16 bits.
const GAP_FILLER: [u8; 4] = [0xff, 0xff, 0, 0];

/// The contents that are allowed at a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MaskKind {
    /// Anything: the choice that Linux made at boot cannot be known here.
    Any = 0,
    /// A return, or a jump to a return thunk.
    Return = 1,
    /// A call or jump through a register: by a thunk, with a fence, or plain.
    Indirect = 2,
}

/// Bytes that Linux patches at boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mask {
    /// Start of the bytes: an address or a position.
    pub start: u64,
    /// Number of bytes.
    pub bytes: u8,
    /// The allowed contents.
    pub kind: MaskKind,
}

impl Mask {
    /// The end of the bytes.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.into())
    }
}

/// The profile's sections that hold fingerprints; see [`super::format::Header`].
#[derive(Clone, Debug, Default)]
pub(crate) struct FingerprintSections {
    pub key: Vec<u8>,
    pub covered: Vec<u8>,
    pub fingerprints: Vec<u8>,
    pub masks: Vec<u8>,
}

/// Encodes `masks`, which are sorted by position and do not overlap.
pub(super) fn encode_masks(masks: &[Mask]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut end = 0;
    for mask in masks {
        let mut gap = mask.start - end;
        while gap > u64::from(u16::MAX) {
            bytes.extend(GAP_FILLER);
            gap -= u64::from(u16::MAX);
        }
        bytes.extend((gap as u16).to_le_bytes());
        bytes.extend([mask.bytes, mask.kind as u8]);
        end = mask.end();
    }
    bytes
}

/// The state of a walk over the chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkCursor {
    /// The current range, and the position of its first byte.
    range: usize,
    range_at: u64,
    /// The next chunk.
    chunk: usize,
    /// The next mask, and the end position of the previous one.
    mask: usize,
    mask_at: u64,
    /// The last mask, if it extends into the next chunk.
    open: Option<Mask>,
}

/// A chunk with its masks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Address of its first byte.
    pub address: u64,
    /// The lower half of the hash.
    pub fingerprint: u32,
    /// The masks by address; the first may begin before the chunk, the last may end after it.
    pub masks: Vec<Mask>,
}

impl Profile<'_> {
    /// The key of the fingerprints; `None` if the profile has none.
    pub fn fingerprint_key(&self) -> Option<Key> {
        let [key, ..] = self.header.fingerprints();
        (key.count == 2).then(|| Key::new([self.u64_at(key, 0), self.u64_at(key, 1)]))
    }

    /// Bytes of the profile that the fingerprints occupy.
    pub fn fingerprint_bytes(&self) -> u64 {
        let [key, covered, fingerprints, masks] = self.header.fingerprints();
        (8 * key.count + 16 * covered.count + 4 * fingerprints.count + 4 * masks.count) as u64
    }

    /// The percentage of chunks before `cursor`.
    pub fn chunks_passed(&self, cursor: &ChunkCursor) -> u64 {
        let [_, _, fingerprints, _] = self.header.fingerprints();
        (100 * cursor.chunk as u64).checked_div(fingerprints.count as u64).unwrap_or(100)
    }

    /// The chunk at `cursor`, which moves to the next one; `None` after the last.
    pub fn next_chunk(&self, cursor: &mut ChunkCursor) -> Option<Chunk> {
        let mut chunk = Chunk::default();
        self.read_chunk(cursor, &mut chunk).then_some(chunk)
    }

    /// Makes `chunk` the one at `cursor`, which moves to the next one; false after the last.
    pub fn read_chunk(&self, cursor: &mut ChunkCursor, chunk: &mut Chunk) -> bool {
        self.try_read_chunk(cursor, chunk).is_some()
    }

    fn try_read_chunk(&self, cursor: &mut ChunkCursor, chunk: &mut Chunk) -> Option<()> {
        let [_, covered, fingerprints, masks] = self.header.fingerprints();
        let place = (cursor.chunk * CHUNK) as u64;
        if cursor.chunk >= fingerprints.count {
            return None;
        }
        let mut range = self.range(covered, cursor.range)?;
        while place - cursor.range_at >= range.end - range.start {
            cursor.range += 1;
            cursor.range_at += range.end - range.start;
            range = self.range(covered, cursor.range)?;
        }
        let address = range.start + (place - cursor.range_at);
        chunk.address = address;
        chunk.fingerprint = self.u32_at(fingerprints, cursor.chunk);
        cursor.chunk += 1;
        let end = place + CHUNK as u64;
        let by_address = |mask: Mask| Mask {
            start: address.wrapping_add(mask.start).wrapping_sub(place),
            ..mask
        };
        let mut last = cursor.open.take();
        chunk.masks.clear();
        chunk.masks.extend(last.map(by_address));
        while cursor.mask < masks.count {
            let mask = self.mask(masks, cursor.mask, cursor.mask_at);
            if mask.start >= end {
                break;
            }
            cursor.mask += 1;
            cursor.mask_at = mask.end();
            if mask.bytes > 0 {
                chunk.masks.push(by_address(mask));
                last = Some(mask);
            }
        }
        cursor.open = last.filter(|mask| mask.end() > end);
        Some(())
    }

    fn range(&self, covered: Section, at: usize) -> Option<Range<u64>> {
        (at < covered.count).then(|| self.u64_at(covered, 2 * at)..self.u64_at(covered, 2 * at + 1))
    }

    fn mask(&self, masks: Section, number: usize, before: u64) -> Mask {
        let [low, high, bytes, kind] = self.u32_at(masks, number).to_le_bytes();
        let kind = match kind {
            1 => MaskKind::Return,
            2 => MaskKind::Indirect,
            _ => MaskKind::Any,
        };
        Mask { start: before + u64::from(u16::from_le_bytes([low, high])), bytes, kind }
    }

    pub(super) fn check_fingerprints(&self, pause: &mut dyn FnMut()) -> Result<(), ProfileError> {
        let [key, covered, fingerprints, masks] = self.header.fingerprints();
        let none = [key, covered, fingerprints, masks].iter().all(|section| section.count == 0);
        rule(none || key.count == 2, "the fingerprints have no key")?;
        let image = self.header.text..self.header.end;
        let mut behind = image.start;
        let mut bytes = 0;
        for range in (0..covered.count).filter_map(|at| self.range(covered, at)) {
            let inside = behind <= range.start && range.start < range.end && range.end <= image.end;
            rule(inside, "fingerprints lie outside the image or are not sorted")?;
            rule(
                (range.end - range.start) % CHUNK as u64 == 0,
                "a range of fingerprints is not a multiple of the chunk size",
            )?;
            bytes += range.end - range.start;
            behind = range.end;
        }
        rule(bytes == (fingerprints.count * CHUNK) as u64, "fingerprints are missing")?;
        let known = |mask: [u8; 4]| match mask {
            [.., 0, 0] => mask == GAP_FILLER,
            [.., kind] => kind <= MaskKind::Indirect as u8,
        };
        rule(
            all(0..masks.count, pause, |i| known(self.u32_at(masks, i).to_le_bytes())),
            "a mask is of an unknown kind",
        )
    }
}

/// SipHash-2-4 (Aumasson and Bernstein, 2012) of `words`, 8 little-endian bytes each.
pub fn hash(key: [u64; 2], words: &[u64]) -> u64 {
    let mut v = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    for &word in words.iter().chain([&((8 * words.len() as u64) << 56)]) {
        v[3] ^= word;
        round(&mut v);
        round(&mut v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    (0..4).for_each(|_| round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn round(v: &mut [u64; 4]) {
    let [mut a, mut b, mut c, mut d] = *v;
    a = a.wrapping_add(b);
    b = b.rotate_left(13) ^ a;
    a = a.rotate_left(32);
    c = c.wrapping_add(d);
    d = d.rotate_left(16) ^ c;
    a = a.wrapping_add(d);
    d = d.rotate_left(21) ^ a;
    c = c.wrapping_add(b);
    b = b.rotate_left(17) ^ c;
    c = c.rotate_left(32);
    *v = [a, b, c, d];
}

/// The expanded key of the fingerprints.
#[derive(Clone, Debug, Default)]
pub struct Key {
    first: u64,
    /// For the lower and the upper half of each word.
    halves: [[u64; 2]; CHUNK_WORDS],
}

impl Key {
    /// Expands the profile's key.
    pub fn new(key: [u64; 2]) -> Self {
        let word = |number: usize| hash(key, &[number as u64]);
        let mut halves = [[0; 2]; CHUNK_WORDS];
        for (half, number) in halves.iter_mut().flatten().zip(1..) {
            *half = word(number);
        }
        Self { first: word(0), halves }
    }
}

/// The fingerprint of a chunk's `words` at `address`; masked bytes count as zero.
///
/// It is Multilinear-HM, which is strongly universal: with a random key, two different chunks agree once in 2^32
/// (Lemire and Kaser, "Strongly universal string hashing is fast", 2014).
pub fn fingerprint(key: &Key, address: u64, mut words: [u64; CHUNK_WORDS], masks: &[Mask]) -> u32 {
    for mask in masks {
        let end = mask.end().min(address.saturating_add(CHUNK as u64));
        for at in mask.start.max(address)..end {
            words[(at - address) as usize / 8] &= !(0xff << ((at - address) % 8 * 8));
        }
    }
    let mut sum = key.first;
    for (word, [low, high]) in words.iter().zip(&key.halves) {
        let low = low.wrapping_add(word & u64::from(u32::MAX));
        sum = sum.wrapping_add(low.wrapping_mul(high.wrapping_add(word >> 32)));
    }
    (sum >> 32) as u32
}

/// The words of a chunk's `bytes`.
pub fn chunk_words(bytes: &[u8; CHUNK]) -> [u64; CHUNK_WORDS] {
    let mut words = [0; CHUNK_WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    }
    words
}
