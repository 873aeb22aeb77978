//! Fingerprints of the kernel package's image, as it lies in memory before Linux patches it.
//!
//! A bzImage's payload is an ELF file followed by three relocation tables (two since Linux 6.15). Each holds four-byte
//! addresses: of 64-bit words, of 32-bit words that shrink as the kernel moves up, of 32-bit words that grow. Each
//! table begins with a zero (Linux, `Documentation/arch/x86/boot.rst` for the payload, `arch/x86/tools/relocs.c` for
//! the tables).
//!
//! The image is untrusted: a wrong file is an error or yields useless fingerprints, and has no other effect.

mod elf;
mod patched;
pub(super) mod symbols;
#[cfg(test)]
mod tests;

use super::btf::Btf;
use super::build::Image;
use super::fingerprints::{self, FingerprintSections, Mask, MaskKind, CHUNK};
use super::format::Header;
use super::listing::SymbolNames;
use super::ProfileError;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use elf::{build_id, word, Elf, Segment};

/// Start of the kernel's part of the address space. Segments below it hold offsets within per-CPU data.
const KERNEL_HALF: u64 = 0xffff_ffff_8000_0000;
/// Maximum bytes of an image in memory.
const MAX_IMAGE_BYTES: u64 = 256 << 20;

fn unusable(rule: &'static str) -> ProfileError {
    ProfileError::Image(rule)
}

/// An image in memory, at the addresses where it runs.
pub(super) struct LoadedImage {
    base: u64,
    bytes: Vec<u8>,
    /// The ranges that come from the file.
    known: Vec<Range<u64>>,
}

impl LoadedImage {
    /// Lays the file out so that its first byte is at `text`.
    fn new(file: &[u8], text: u64) -> Result<Self, ProfileError> {
        let (segments, end) = Elf::parse(file)?.segments()?;
        let linked = segments.iter().map(|segment| segment.address).min();
        let linked = linked.ok_or(unusable("it has no loadable segment"))?;
        let top = segments.iter().map(|s| s.address + s.file.len() as u64).max().unwrap_or(linked);
        if top - linked > MAX_IMAGE_BYTES {
            return Err(unusable("it is too large"));
        }
        let mut bytes = vec![0; (top - linked) as usize];
        for segment in &segments {
            let at = (segment.address - linked) as usize;
            let from = file.get(segment.file.clone()).unwrap_or_default();
            bytes.get_mut(at..at + from.len()).unwrap_or_default().copy_from_slice(from);
        }
        let moved = text.wrapping_sub(linked);
        let known = |s: &Segment| {
            let start = s.address.wrapping_add(moved);
            start..start.saturating_add(s.file.len() as u64)
        };
        let known = segments.iter().map(known).collect();
        let mut loaded = Self { base: linked, bytes, known };
        if moved != 0 {
            loaded.relocate(file.get(end..).unwrap_or_default(), moved)?;
        }
        loaded.base = text;
        Ok(loaded)
    }

    /// Relocates the words in `tables` by `moved`.
    fn relocate(&mut self, tables: &[u8], moved: u64) -> Result<(), ProfileError> {
        let entries: Vec<u32> = tables.chunks_exact(4).filter_map(word).collect();
        // There may be zeros before the first table: the last three, or two, begin the tables.
        let zeros =
            || entries.iter().enumerate().filter(|(_, &entry)| entry == 0).map(|(at, _)| at);
        let mut starts: Vec<usize> = zeros().rev().take(3).collect();
        starts.reverse();
        let [wide, rest @ ..] = starts.as_slice() else {
            return Err(unusable("it has no relocations"));
        };
        let (shrinking, growing) = match rest {
            [shrinking, growing] => (Some(*shrinking), *growing),
            [growing] => (None, *growing),
            _ => return Err(unusable("it has no relocations")),
        };
        let table = |range: Range<usize>| entries.get(range).unwrap_or_default().iter().copied();
        let address = |entry: u32| i64::from(entry as i32) as u64;
        for at in table(wide + 1..shrinking.unwrap_or(growing)).map(address) {
            self.change(at, |word: [u8; 8]| {
                u64::from_le_bytes(word).wrapping_add(moved).to_le_bytes()
            });
        }
        for at in table(shrinking.unwrap_or(growing) + 1..growing).map(address) {
            self.change(at, |word: [u8; 4]| {
                u32::from_le_bytes(word).wrapping_sub(moved as u32).to_le_bytes()
            });
        }
        for at in table(growing + 1..entries.len()).map(address) {
            self.change(at, |word: [u8; 4]| {
                u32::from_le_bytes(word).wrapping_add(moved as u32).to_le_bytes()
            });
        }
        Ok(())
    }

    /// Changes the bytes at `at`, if they are in the image.
    fn change<const N: usize>(&mut self, at: u64, to: impl Fn([u8; N]) -> [u8; N]) {
        let place = at.checked_sub(self.base).and_then(|at| usize::try_from(at).ok());
        let bytes = place.and_then(|place| self.bytes.get_mut(place..)?.first_chunk_mut());
        if let Some(bytes) = bytes {
            *bytes = to(*bytes);
        }
    }

    /// The bytes at `address`.
    fn bytes_at<const N: usize>(&self, address: u64) -> Option<&[u8; N]> {
        let place = usize::try_from(address.checked_sub(self.base)?).ok()?;
        self.bytes.get(place..)?.first_chunk()
    }

    /// The target of the four-byte offset at `at`, which is relative to its own address.
    fn relative(&self, at: u64) -> Option<u64> {
        Some(at.wrapping_add(i64::from(i32::from_le_bytes(*self.bytes_at(at)?)) as u64))
    }

    fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }
}

/// Fingerprints of `image` for a kernel with the symbols `names`.
pub(crate) fn fingerprints(
    image: &Image<'_>,
    names: &SymbolNames<'_>,
    btf: &Btf<'_>,
    header: &Header,
) -> Result<FingerprintSections, ProfileError> {
    let running = build_id(image.notes).ok_or(unusable("the running kernel has no build ID"))?;
    let elf = Elf::parse(image.vmlinux)?;
    elf.segments()?;
    if elf.build_id() != Some(running) {
        return Err(unusable("its build ID differs from that of the kernel in memory"));
    }
    let loaded = LoadedImage::new(image.vmlinux, header.text)?;
    let covered = covered(&loaded, names)?;
    let masks = patched::masks(&loaded, names, btf, image.calls_changed)?;
    Ok(encode(&loaded, image.key, &covered, &masks))
}

/// The covered ranges: text, and the read-only data that is not written at boot.
fn covered(loaded: &LoadedImage, names: &SymbolNames<'_>) -> Result<Vec<Range<u64>>, ProfileError> {
    let range = |start, end| {
        names
            .range(start, end)
            .ok_or(unusable("the kernel lacks the symbols of its text and read-only data"))
    };
    let text = range("_stext", "_etext")?;
    let rodata = range("__start_rodata", "__end_rodata")?;
    let written = range("__start_ro_after_init", "__end_ro_after_init")?;
    let mut whole: Vec<Range<u64>> = Vec::new();
    for part in [text, rodata.start..written.start, written.end..rodata.end] {
        for known in &loaded.known {
            let (start, end) = (part.start.max(known.start), part.end.min(known.end));
            let chunk = CHUNK as u64;
            let range = start.next_multiple_of(chunk)..end / chunk * chunk;
            whole.extend(Some(range).filter(|range| range.start < range.end));
        }
    }
    let sorted = whole.windows(2).all(|pair| pair[0].end <= pair[1].start);
    (sorted && !whole.is_empty())
        .then_some(whole)
        .ok_or(unusable("it does not contain the kernel's text and read-only data"))
}

/// The fingerprint sections of the profile; `masks` are sorted by address and do not overlap.
fn encode(
    loaded: &LoadedImage,
    key: [u64; 2],
    covered: &[Range<u64>],
    masks: &[Mask],
) -> FingerprintSections {
    let hash_key = fingerprints::Key::new(key);
    let mut parts = FingerprintSections {
        key: key.iter().flat_map(|word| word.to_le_bytes()).collect(),
        ..FingerprintSections::default()
    };
    let mut placed: Vec<Mask> = Vec::new();
    let mut place = 0;
    for range in covered {
        parts.covered.extend([range.start, range.end].iter().flat_map(|word| word.to_le_bytes()));
        let mut rest = masks
            .get(masks.partition_point(|mask| mask.end() <= range.start)..)
            .unwrap_or_default();
        let mine = rest.iter().take_while(|mask| mask.start < range.end);
        placed.extend(mine.filter_map(|mask| {
            // A mask across the range's edge: only its inner part counts, with any contents.
            let (at, end) = (mask.start.max(range.start), mask.end().min(range.end));
            let kind =
                if (at, end) == (mask.start, mask.end()) { mask.kind } else { MaskKind::Any };
            Some(Mask {
                start: at - range.start + place,
                bytes: u8::try_from(end - at).ok()?,
                kind,
            })
        }));
        for address in range.clone().step_by(CHUNK) {
            let end = address + CHUNK as u64;
            while rest.first().is_some_and(|mask| mask.end() <= address) {
                rest = rest.get(1..).unwrap_or_default();
            }
            let count = rest.iter().take_while(|mask| mask.start < end).count();
            let own = rest.get(..count).unwrap_or_default();
            let bytes = loaded.bytes_at(address).copied().unwrap_or([0; CHUNK]);
            let words = fingerprints::chunk_words(&bytes);
            let fingerprint = fingerprints::fingerprint(&hash_key, address, words, own);
            parts.fingerprints.extend(fingerprint.to_le_bytes());
        }
        place += range.end - range.start;
    }
    parts.masks = fingerprints::encode_masks(&placed);
    parts
}
