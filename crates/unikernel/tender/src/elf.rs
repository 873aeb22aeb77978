//! Parses and checks an image's headers: ELF64 (System V ABI, chapters 4 and 5; x86-64 psABI) with the rules of
//! [`kyozon_abi::unikernel`].
//!
//! The bytes are untrusted. [`number`] reads every number and checks bounds; sums are checked for overflow; the numbers
//! of segments and symbols are limited. This module has no unsafe code.

use crate::error::{bail, ensure, Error, Result};
use kyozon_abi::unikernel::*;
use std::ops::Range;

const PAGE: u64 = 4096;
const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_INTERP: u64 = 3;
const PT_NOTE: u64 = 4;
const PT_TLS: u64 = 7;
const SHT_SYMTAB: u64 = 2;
/// Maximum number of program headers, of which some do not describe memory.
const MAX_HEADERS: u64 = 64;
/// Maximum number of symbols that are searched.
const MAX_SYMBOLS: usize = 1 << 20;

/// A loadable segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First virtual address.
    pub base: u64,
    /// Size in memory in bytes. Bytes that are not in the file are zero.
    pub bytes: u64,
    /// Byte range in the file.
    pub file: Range<usize>,
    /// The guest can write the segment.
    pub write: bool,
    /// The guest can execute the segment.
    pub execute: bool,
    /// The segment is writable, and each peer of a family has a copy.
    pub private: bool,
}

impl Segment {
    /// Address range of the pages that the segment touches.
    pub fn pages(&self) -> Range<u64> {
        self.base & !(PAGE - 1)..(self.base + self.bytes).next_multiple_of(PAGE)
    }
}

/// The template of thread-local data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Byte range in the file.
    pub file: Range<usize>,
    /// Size in memory in bytes.
    pub bytes: u64,
    /// Alignment in bytes: a power of two, at most a page.
    pub align: u64,
}

/// A valid image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// At least one segment, sorted by address; no two share a page.
    pub segments: Vec<Segment>,
    /// Address of the first instruction.
    pub entry: u64,
    /// Template of thread-local data.
    pub tls: Tls,
}

/// The little-endian number of `N` bytes at the offset `at`.
fn number<const N: usize>(bytes: &[u8], at: u64) -> Result<u64> {
    let short = || Error::Image(format!("the file is truncated: no {N} bytes at offset {at:#x}"));
    let at = usize::try_from(at).map_err(|_| short())?;
    let field = at.checked_add(N).and_then(|end| bytes.get(at..end)).ok_or_else(short)?;
    Ok(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// The range of `count` bytes at the offset `at` of the file. `what` names it in an error.
fn extent(file: &[u8], at: u64, count: u64, what: &str) -> Result<Range<usize>> {
    let end = at.checked_add(count).filter(|end| *end <= file.len() as u64);
    let end =
        end.ok_or_else(|| Error::Image(format!("{what} extends past the end of the file")))?;
    Ok(at as usize..end as usize)
}

/// One program header (figure 5-1 of the System V ABI).
struct Header {
    kind: u64,
    flags: u64,
    offset: u64,
    address: u64,
    file_bytes: u64,
    bytes: u64,
    align: u64,
}

fn headers(file: &[u8]) -> Result<Vec<Header>> {
    let (table, size, count) =
        (number::<8>(file, 0x20)?, number::<2>(file, 0x36)?, number::<2>(file, 0x38)?);
    ensure!(Image, size == 56, "a program header has {size} bytes instead of 56");
    ensure!(
        Image,
        count <= MAX_HEADERS,
        "there are {count} program headers; at most {MAX_HEADERS} are allowed"
    );
    (0..count)
        .map(|i| {
            let at = table.checked_add(i * size);
            let at = at.ok_or_else(|| {
                Error::Image("the offset of the program headers overflows".into())
            })?;
            extent(file, at, size, "a program header")?;
            Ok(Header {
                kind: number::<4>(file, at)?,
                flags: number::<4>(file, at + 4)?,
                offset: number::<8>(file, at + 8)?,
                address: number::<8>(file, at + 16)?,
                file_bytes: number::<8>(file, at + 32)?,
                bytes: number::<8>(file, at + 40)?,
                align: number::<8>(file, at + 48)?,
            })
        })
        .collect()
}

/// Parses an image's file and checks it against the rules.
///
/// # Errors
///
/// [`Error::Image`] names the first rule that the file breaks.
pub fn parse(file: &[u8]) -> Result<Image> {
    ensure!(Image, file.starts_with(b"\x7fELF"), "this is not an ELF file");
    let kind = (number::<1>(file, 4)?, number::<1>(file, 5)?, number::<2>(file, 18)?);
    ensure!(Image, kind == (2, 1, 62), "this is not an ELF64 file for x86-64");
    let headers = headers(file)?;
    let other = "this is a program for an operating system, not a unikernel";
    ensure!(Image, headers.iter().all(|h| h.kind != PT_INTERP && h.kind != PT_DYNAMIC), "{other}");
    ensure!(Image, number::<2>(file, 16)? == 2, "{other}: it is not linked at a fixed address");
    check_version(file, &headers)?;

    let mut segments = Vec::new();
    for header in headers.iter().filter(|h| h.kind == PT_LOAD && h.bytes != 0) {
        segments.push(segment(file, header)?);
        ensure!(
            Image,
            segments.len() <= MAX_SEGMENTS,
            "the image has more than {MAX_SEGMENTS} segments"
        );
    }
    ensure!(Image, !segments.is_empty(), "the image has no loadable segment");
    segments.sort_by_key(|segment| segment.base);
    for pair in segments.windows(2) {
        let (first, second) = (pair[0].pages(), pair[1].pages());
        ensure!(
            Image,
            first.end <= second.start,
            "the segments at {:#x} and {:#x} share a page",
            pair[0].base,
            pair[1].base
        );
    }
    let private: u64 = segments.iter().filter(|s| s.private).map(|s| s.bytes).sum();
    ensure!(
        Image,
        private <= MAX_PRIVATE_BYTES,
        "private segments have more than {}M",
        MAX_PRIVATE_BYTES >> 20
    );
    let entry = number::<8>(file, 24)?;
    let holds_entry = |s: &&Segment| s.execute && (s.base..s.base + s.bytes).contains(&entry);
    ensure!(
        Image,
        segments.iter().any(|s| holds_entry(&s)),
        "the entry point {entry:#x} is not in executable memory"
    );

    let mut templates = headers.iter().filter(|h| h.kind == PT_TLS);
    let tls = templates.next().map(|header| tls(file, header)).transpose()?.unwrap_or_default();
    ensure!(
        Image,
        templates.next().is_none(),
        "the image has more than one segment of thread-local data"
    );
    Ok(Image { segments, entry, tls })
}

fn segment(file: &[u8], header: &Header) -> Result<Segment> {
    let Header { address: base, bytes, file_bytes, flags, .. } = *header;
    let end = base.checked_add(bytes).filter(|end| *end <= GUEST_IMAGE_END);
    ensure!(
        Image,
        base >= GUEST_IMAGE_BASE && end.is_some(),
        "the segment at {base:#x} is outside {GUEST_IMAGE_BASE:#x}..{GUEST_IMAGE_END:#x}"
    );
    ensure!(
        Image,
        file_bytes <= bytes,
        "the segment at {base:#x} is longer in the file than in memory"
    );
    ensure!(Image, flags & 3 != 3, "the segment at {base:#x} is writable and executable");
    let file = extent(file, header.offset, file_bytes, &format!("the segment at {base:#x}"))?;
    let (write, execute) = (flags & 2 != 0, flags & 1 != 0);
    let private = write && flags & u64::from(SEGMENT_PRIVATE) != 0;
    Ok(Segment { base, bytes, file, write, execute, private })
}

fn tls(file: &[u8], header: &Header) -> Result<Tls> {
    let align = header.align.max(1);
    ensure!(
        Image,
        header.bytes <= MAX_TLS_BYTES,
        "the thread-local data has more than {MAX_TLS_BYTES} bytes"
    );
    ensure!(
        Image,
        header.file_bytes <= header.bytes,
        "the thread-local data is longer in the file than in memory"
    );
    ensure!(
        Image,
        align.is_power_of_two() && align <= PAGE,
        "the thread-local data has alignment {align}: use a power of two up to {PAGE}"
    );
    let file = extent(file, header.offset, header.file_bytes, "the thread-local data")?;
    Ok(Tls { file, bytes: header.bytes, align })
}

/// Compares the interface version in the image's note with the tender's.
fn check_version(file: &[u8], headers: &[Header]) -> Result<()> {
    for header in headers.iter().filter(|h| h.kind == PT_NOTE) {
        let notes = &file[extent(file, header.offset, header.file_bytes, "a note")?];
        let mut at = 0;
        // Each iteration advances by at least 12 bytes.
        while let (Ok(name), Ok(desc), Ok(kind)) =
            (number::<4>(notes, at), number::<4>(notes, at + 4), number::<4>(notes, at + 8))
        {
            let content = at + 12 + name.next_multiple_of(4);
            if name == 7
                && notes[at as usize + 12..].starts_with(b"Kyozon\0")
                && kind == u64::from(NOTE_VERSION)
            {
                let built = number::<4>(notes, content)?;
                ensure!(
                    Image,
                    desc == 4 && built == u64::from(UNIKERNEL_VERSION),
                    "the image was built for version {built} of the guest interface instead of {UNIKERNEL_VERSION}: \
                     rebuild it"
                );
                return Ok(());
            }
            at = content + desc.next_multiple_of(4);
        }
    }
    bail!(Image, "the image is not a unikernel: it has no note named Kyozon")
}

/// A function or object of the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Name as in the file, not demangled.
    pub name: String,
    /// Distance in bytes from the symbol's start.
    pub offset: u64,
}

/// The function that contains `address`; `None` if the image has no such symbol.
///
/// Invalid symbol tables also give `None`: symbols only help the reader of a report.
pub fn symbol(file: &[u8], address: u64) -> Option<Symbol> {
    let (table, size, count) = (
        number::<8>(file, 0x28).ok()?,
        number::<2>(file, 0x3a).ok()?,
        number::<2>(file, 0x3c).ok()?,
    );
    let section = |i: u64| {
        let at = table.checked_add(i.checked_mul(size)?)?;
        (i < count && size == 64 && extent(file, at, 64, "").is_ok()).then_some(at)
    };
    let content = |at: u64| {
        let (offset, bytes) = (number::<8>(file, at + 24).ok()?, number::<8>(file, at + 32).ok()?);
        file.get(extent(file, offset, bytes, "").ok()?)
    };
    let at = (0..count)
        .filter_map(section)
        .find(|at| number::<4>(file, at + 4).is_ok_and(|kind| kind == SHT_SYMTAB))?;
    let names = content(section(number::<4>(file, at + 40).ok()?)?)?;
    // A symbol has 24 bytes (figure 4-15). Functions have type 2, labels of assembly code type 0.
    let best = content(at)?
        .chunks_exact(24)
        .take(MAX_SYMBOLS)
        .filter(|symbol| matches!(symbol[4] & 15, 0 | 2))
        .filter_map(|symbol| {
            let (value, bytes) = (number::<8>(symbol, 8).ok()?, number::<8>(symbol, 16).ok()?);
            let contains = address.checked_sub(value)? < bytes.max(1);
            contains.then(|| (value, number::<4>(symbol, 0).unwrap_or(0)))
        })
        .max()?;
    let name = names.get(best.1 as usize..)?.split(|byte| *byte == 0).next()?;
    let name = String::from_utf8_lossy(name.get(..name.len().min(1024))?).into_owned();
    (!name.is_empty()).then_some(Symbol { name, offset: address - best.0 })
}

/// Entry of a fuzzer: every accepted image must satisfy the invariants that other modules rely on.
pub fn fuzz(file: &[u8]) {
    if let Ok(image) = parse(file) {
        let mut end = GUEST_IMAGE_BASE;
        for segment in &image.segments {
            assert!(segment.pages().start >= end, "segments are sorted and share no page");
            end = segment.pages().end;
            assert!(file[segment.file.clone()].len() as u64 <= segment.bytes);
            assert!(!(segment.write && segment.execute));
        }
        assert!(end <= GUEST_IMAGE_END);
        assert!(file[image.tls.file].len() as u64 <= image.tls.bytes);
        let _ = symbol(file, image.entry);
    }
    let _ = symbol(file, GUEST_IMAGE_BASE);
}

#[cfg(test)]
pub(crate) mod tests;
