//! Parses and checks an image's headers: ELF64 (System V ABI, chapters 4 and 5; x86-64 psABI) with the rules of
//! [`kyozon_abi::unikernel`].
//!
//! The bytes are untrusted. [`at`] reads every structure and checks bounds; sums are checked for overflow; the numbers
//! of segments and symbols are limited. This module has no unsafe code: the crate `object` describes the structures.

use crate::error::{ensure, Error, Result};
use kyozon_abi::unikernel::*;
use object::elf::{
    FileHeader64, NoteHeader64, ProgramHeader64, SectionHeader64, Sym64, ELFCLASS64, ELFDATA2LSB,
    EM_X86_64, ET_DYN, ET_EXEC, PF_W, PF_X, PT_DYNAMIC, PT_INTERP, PT_LOAD, PT_NOTE, PT_TLS,
    SHT_SYMTAB, STT_FUNC, STT_NOTYPE,
};
use object::pod::{self, Pod};
use object::{LittleEndian as LE, U32};
use std::ops::Range;

type Header = ProgramHeader64<LE>;

const PAGE: u64 = 4096;
/// Maximum number of program headers, of which some do not describe memory.
const MAX_HEADERS: u16 = 64;
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

/// A program in an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// First page.
    pub base: u64,
    /// Bytes up to the end of the last page.
    pub bytes: u64,
    /// Address of the first instruction.
    pub entry: u64,
    /// Offset of its file in that of host and program.
    pub file: usize,
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
    /// The program of which it is the host; empty without one.
    pub program: Program,
}

/// The structure at the offset `at`.
fn at<T: Pod>(bytes: &[u8], at: u64) -> Result<&T> {
    let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
    let found = rest.and_then(|rest| pod::from_bytes(rest).ok());
    found.map(|(structure, _)| structure).ok_or_else(|| {
        let size = size_of::<T>();
        Error::Image(format!("the file is truncated: no {size} bytes at offset {at:#x}"))
    })
}

/// The range of `count` bytes at the offset `at` of the file. `what` names it in an error.
fn extent(file: &[u8], at: u64, count: u64, what: &str) -> Result<Range<usize>> {
    let end = at.checked_add(count).filter(|end| *end <= file.len() as u64);
    let end =
        end.ok_or_else(|| Error::Image(format!("{what} extends past the end of the file")))?;
    Ok(at as usize..end as usize)
}

fn headers<'a>(file: &'a [u8], head: &FileHeader64<LE>) -> Result<Vec<&'a Header>> {
    let (size, count) = (head.e_phentsize.get(LE), head.e_phnum.get(LE));
    ensure!(
        Image,
        usize::from(size) == size_of::<Header>(),
        "a program header has {size} bytes instead of 56"
    );
    ensure!(
        Image,
        count <= MAX_HEADERS,
        "there are {count} program headers; at most {MAX_HEADERS} are allowed"
    );
    let header = |i: u16| {
        let from = head.e_phoff.get(LE).checked_add(u64::from(i) * u64::from(size));
        let from =
            from.ok_or_else(|| Error::Image("the offset of the program headers overflows".into()))?;
        extent(file, from, size.into(), "a program header")?;
        at(file, from)
    };
    (0..count).map(header).collect()
}

/// Parses an image's file and checks it against the rules.
///
/// # Errors
///
/// [`Error::Image`] names the first rule that the file breaks.
pub fn parse(file: &[u8]) -> Result<Image> {
    ensure!(Image, file.starts_with(b"\x7fELF"), "this is not an ELF file");
    let head: &FileHeader64<LE> = at(file, 0)?;
    let kind = (head.e_ident.class, head.e_ident.data, head.e_machine.get(LE));
    ensure!(
        Image,
        kind == (ELFCLASS64, ELFDATA2LSB, EM_X86_64),
        "this is not an ELF64 file for x86-64"
    );
    let headers = headers(file, head)?;
    let of_type = |wanted| headers.iter().filter(move |h| h.p_type.get(LE) == wanted);
    let other = "this is a program for an operating system, not a unikernel";
    let linked = of_type(PT_INTERP).chain(of_type(PT_DYNAMIC)).next().is_some();
    ensure!(Image, !linked, "{other}");
    let fixed = head.e_type.get(LE) == ET_EXEC;
    ensure!(Image, fixed, "{other}: it is not linked at a fixed address");
    let built = note(file, of_type(PT_NOTE).copied(), NOTE_VERSION)?;
    let built = built.ok_or_else(|| {
        Error::Image("the image is not a unikernel: it has no note named Kyozon".into())
    })?;
    ensure!(
        Image,
        built == UNIKERNEL_VERSION,
        "the image was built for version {built} of the guest interface instead of {UNIKERNEL_VERSION}: rebuild it"
    );

    let segments = segments(file, of_type(PT_LOAD).copied(), 0)?;
    let private: u64 = segments.iter().filter(|s| s.private).map(|s| s.bytes).sum();
    ensure!(
        Image,
        private <= MAX_PRIVATE_BYTES,
        "private segments have more than {}M",
        MAX_PRIVATE_BYTES >> 20
    );
    let entry = head.e_entry.get(LE);
    check_entry(&segments, entry)?;

    let mut templates = of_type(PT_TLS);
    let tls = templates.next().map(|header| tls(file, header)).transpose()?.unwrap_or_default();
    ensure!(
        Image,
        templates.next().is_none(),
        "the image has more than one segment of thread-local data"
    );
    Ok(Image { segments, entry, tls, program: Program::default() })
}

/// Whether the file is a program that needs a host image. Other files are for [`parse`].
pub fn is_program(file: &[u8]) -> bool {
    let seam = || {
        let head: &FileHeader64<LE> = at(file, 0)?;
        let notes = headers(file, head)?;
        note(file, notes.into_iter().filter(|h| h.p_type.get(LE) == PT_NOTE), NOTE_SEAM)
    };
    file.starts_with(b"\x7fELF") && seam().is_ok_and(|seam| seam.is_some())
}

impl Image {
    /// Makes this image, of the first `host` bytes of `file`, the host of the program behind them.
    ///
    /// # Errors
    ///
    /// [`Error::Image`] names the first rule that the program breaks.
    pub fn with_program(mut self, file: &[u8], host: usize) -> Result<Self> {
        let program = file.get(host..).unwrap_or_default();
        let head: &FileHeader64<LE> = at(program, 0)?;
        let kind = (head.e_ident.class, head.e_ident.data, head.e_machine.get(LE));
        ensure!(
            Image,
            kind == (ELFCLASS64, ELFDATA2LSB, EM_X86_64) && head.e_type.get(LE) == ET_DYN,
            "this is not a position-independent program for x86-64"
        );
        let headers = headers(program, head)?;
        let of_type = |wanted| headers.iter().filter(move |h| h.p_type.get(LE) == wanted).copied();
        ensure!(Image, of_type(PT_INTERP).next().is_none(), "the program is not static");
        let built = note(program, of_type(PT_NOTE), NOTE_SEAM)?.unwrap_or_default();
        ensure!(
            Image,
            built == SEAM_VERSION,
            "the program was linked for version {built} of its host's interface instead of {SEAM_VERSION}: link it with \
             kyozon cc again"
        );
        let mut own = segments(program, of_type(PT_LOAD), GUEST_PROGRAM_BASE)?;
        let entry = head.e_entry.get(LE).wrapping_add(GUEST_PROGRAM_BASE);
        check_entry(&own, entry)?;
        let (first, last) = (own[0].clone(), own[own.len() - 1].pages().end);
        ensure!(
            Image,
            first.base == GUEST_PROGRAM_BASE && first.file.start == 0,
            "the program's first segment does not begin with the file's header"
        );
        let ends = self.segments.last().map_or(0, |s| s.pages().end);
        ensure!(Image, ends <= GUEST_PROGRAM_BASE, "the host image is too large");
        let base = GUEST_PROGRAM_BASE;
        self.program = Program { base, bytes: last - base, entry, file: host };
        for segment in &mut own {
            segment.file = segment.file.start + host..segment.file.end + host;
            // What is private to a host's threads is the host's.
            segment.private = false;
        }
        self.segments.append(&mut own);
        ensure!(
            Image,
            self.segments.len() <= MAX_SEGMENTS,
            "the image has more than {MAX_SEGMENTS} segments"
        );
        Ok(self)
    }
}

fn check_entry(segments: &[Segment], entry: u64) -> Result<()> {
    let holds_entry = |s: &Segment| s.execute && (s.base..s.base + s.bytes).contains(&entry);
    ensure!(
        Image,
        segments.iter().any(holds_entry),
        "the entry point {entry:#x} is not in executable memory"
    );
    Ok(())
}

/// The loadable segments that have memory, sorted by address; at least one. `bias` is added to each address.
fn segments<'a>(
    file: &[u8],
    headers: impl Iterator<Item = &'a Header>,
    bias: u64,
) -> Result<Vec<Segment>> {
    let mut segments = Vec::new();
    for header in headers.filter(|h| h.p_memsz.get(LE) != 0) {
        segments.push(segment(file, header, bias)?);
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
    Ok(segments)
}

fn segment(file: &[u8], header: &Header, bias: u64) -> Result<Segment> {
    let bytes = header.p_memsz.get(LE);
    let base = header.p_vaddr.get(LE).checked_add(bias);
    let base = base.ok_or_else(|| Error::Image("the address of a segment overflows".into()))?;
    let (file_bytes, flags) = (header.p_filesz.get(LE), header.p_flags.get(LE).0);
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
    let (write, execute) = (flags & PF_W.0 != 0, flags & PF_X.0 != 0);
    ensure!(Image, !(write && execute), "the segment at {base:#x} is writable and executable");
    let offset = header.p_offset.get(LE);
    let file = extent(file, offset, file_bytes, &format!("the segment at {base:#x}"))?;
    let private = write && flags & SEGMENT_PRIVATE != 0;
    Ok(Segment { base, bytes, file, write, execute, private })
}

fn tls(file: &[u8], header: &Header) -> Result<Tls> {
    let align = header.p_align.get(LE).max(1);
    let (bytes, file_bytes) = (header.p_memsz.get(LE), header.p_filesz.get(LE));
    ensure!(
        Image,
        bytes <= MAX_TLS_BYTES,
        "the thread-local data has more than {MAX_TLS_BYTES} bytes"
    );
    ensure!(
        Image,
        file_bytes <= bytes,
        "the thread-local data is longer in the file than in memory"
    );
    ensure!(
        Image,
        align.is_power_of_two() && align <= PAGE,
        "the thread-local data has alignment {align}: use a power of two up to {PAGE}"
    );
    let file = extent(file, header.p_offset.get(LE), file_bytes, "the thread-local data")?;
    Ok(Tls { file, bytes, align })
}

/// The 4 bytes of the note with the name `Kyozon` and this type; `None` if there is no such note.
fn note<'a>(
    file: &[u8],
    headers: impl Iterator<Item = &'a Header>,
    kind: u32,
) -> Result<Option<u32>> {
    for header in headers {
        let (offset, bytes) = (header.p_offset.get(LE), header.p_filesz.get(LE));
        let notes = &file[extent(file, offset, bytes, "a note")?];
        let mut from = 0;
        // Each iteration advances by at least 12 bytes.
        while let Ok(note) = at::<NoteHeader64<LE>>(notes, from) {
            let (name, desc) = (u64::from(note.n_namesz.get(LE)), u64::from(note.n_descsz.get(LE)));
            let content = from + 12 + name.next_multiple_of(4);
            if name == 7
                && notes[from as usize + 12..].starts_with(b"Kyozon\0")
                && note.n_type.get(LE).0 == kind
            {
                ensure!(Image, desc == 4, "the note named Kyozon has {desc} bytes instead of 4");
                return Ok(Some(at::<U32<LE>>(notes, content)?.get(LE)));
            }
            from = content + desc.next_multiple_of(4);
        }
    }
    Ok(None)
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
    let head: &FileHeader64<LE> = at(file, 0).ok()?;
    let (size, count) = (head.e_shentsize.get(LE), head.e_shnum.get(LE));
    let section = |i: u32| {
        let wanted = i < count.into() && usize::from(size) == size_of::<SectionHeader64<LE>>();
        let from = head.e_shoff.get(LE).checked_add(u64::from(i) * u64::from(size))?;
        wanted.then(|| at::<SectionHeader64<LE>>(file, from).ok())?
    };
    let content = |section: &SectionHeader64<LE>| {
        let (offset, bytes) = (section.sh_offset.get(LE), section.sh_size.get(LE));
        file.get(extent(file, offset, bytes, "").ok()?)
    };
    let table = (0..count.into())
        .filter_map(section)
        .find(|section| section.sh_type.get(LE) == SHT_SYMTAB)?;
    let names = content(section(table.sh_link.get(LE))?)?;
    let symbols = content(table)?;
    let symbols: &[Sym64<LE>] =
        pod::slice_from_bytes(symbols, symbols.len() / size_of::<Sym64<LE>>()).ok()?.0;
    // Labels of assembly code have no type.
    let best = symbols
        .iter()
        .take(MAX_SYMBOLS)
        .filter(|symbol| matches!(symbol.st_type(), STT_NOTYPE | STT_FUNC))
        .filter_map(|symbol| {
            let (value, bytes) = (symbol.st_value.get(LE), symbol.st_size.get(LE));
            let contains = address.checked_sub(value)? < bytes.max(1);
            contains.then(|| (value, symbol.st_name.get(LE)))
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
    let none =
        Image { segments: vec![], entry: 0, tls: Tls::default(), program: Program::default() };
    if let Ok(image) = none.with_program(file, 0) {
        let mut end = GUEST_PROGRAM_BASE;
        for segment in &image.segments {
            assert!(segment.pages().start >= end && !segment.private);
            end = segment.pages().end;
            assert!(file[segment.file.clone()].len() as u64 <= segment.bytes);
        }
        assert!(end <= GUEST_IMAGE_END && is_program(file));
    }
}

#[cfg(test)]
pub(crate) mod tests;
