//! The parts of a 64-bit ELF file that the fingerprints need: loaded segments and the build ID.
//!
//! The crate `object` reads the headers and the notes; the checks of what they say are here.

use super::{unusable, KERNEL_HALF};
use crate::profile::ProfileError;
use alloc::vec::Vec;
use core::ops::Range;
use object::elf::{FileHeader64, ProgramHeader64, NT_GNU_BUILD_ID, PT_LOAD, PT_NOTE};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader};
use object::{pod, LittleEndian};

type Header = FileHeader64<LittleEndian>;
const LE: LittleEndian = LittleEndian;

pub(super) fn word(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// A loaded part of the file.
pub(super) struct Segment {
    pub address: u64,
    pub file: Range<usize>,
}

/// A 64-bit ELF file (System V ABI, chapters 4 and 5).
pub(super) struct Elf<'a> {
    file: &'a [u8],
    header: &'a Header,
    /// The program headers.
    segments: &'a [ProgramHeader64<LittleEndian>],
}

impl<'a> Elf<'a> {
    /// Finds the headers in `file`.
    pub fn parse(file: &'a [u8]) -> Result<Self, ProfileError> {
        let header = parse_header(file).ok_or(unusable("it is not a 64-bit ELF file"))?;
        let segments = header.program_headers(LE, file);
        let segments = segments.map_err(|_| unusable("its tables lie outside the file"))?;
        Ok(Self { file, header, segments })
    }

    /// The segments of the kernel's part of the address space, and the end of the ELF file.
    pub fn segments(&self) -> Result<(Vec<Segment>, usize), ProfileError> {
        self.read().ok_or(unusable("its tables lie outside the file"))
    }

    fn read(&self) -> Option<(Vec<Segment>, usize)> {
        let end_of = |table: u64, size: u16, count: u16| {
            table.checked_add(u64::from(size) * u64::from(count))
        };
        let header = self.header;
        let sections = end_of(header.e_shoff(LE), header.e_shentsize(LE), header.e_shnum(LE))?;
        let table = end_of(header.e_phoff(LE), header.e_phentsize(LE), header.e_phnum(LE))?;
        let mut segments = Vec::new();
        let mut end = sections.max(table);
        for segment in self.segments {
            let (offset, bytes) = segment.file_range(LE);
            let behind = offset.checked_add(bytes).filter(|&end| end <= self.file.len() as u64)?;
            end = end.max(behind);
            let address = segment.p_vaddr(LE);
            if segment.p_type(LE) == PT_LOAD && address >= KERNEL_HALF {
                address.checked_add(bytes)?;
                segments.push(Segment { address, file: offset as usize..behind as usize });
            }
        }
        // The relocations follow the section headers.
        Some((segments, usize::try_from(end).ok().filter(|&end| end <= self.file.len())?))
    }

    /// The build ID in the notes.
    pub fn build_id(&self) -> Option<&'a [u8]> {
        let notes = self.segments.iter().filter(|segment| segment.p_type(LE) == PT_NOTE);
        notes.filter_map(|notes| build_id(notes.data(LE, self.file).ok()?)).next()
    }
}

fn parse_header(file: &[u8]) -> Option<&Header> {
    let header = Header::parse(file).ok()?;
    header.is_little_endian().then_some(header)
}

/// Address of the segment in the kernel's part of the address space that has `bytes` in memory. The file may end after
/// or within the headers; those that it contains are searched.
pub(super) fn kernel_segment(file: &[u8], bytes: u64) -> Option<u64> {
    let header = parse_header(file)?;
    let size = size_of::<ProgramHeader64<LittleEndian>>();
    if usize::from(header.e_phentsize(LE)) != size {
        return None;
    }
    let table = file.get(usize::try_from(header.e_phoff(LE)).ok()?..)?;
    let count = usize::from(header.e_phnum(LE)).min(table.len() / size);
    let (segments, _) =
        pod::slice_from_bytes::<ProgramHeader64<LittleEndian>>(table, count).ok()?;
    let found = segments.iter().find(|segment| {
        segment.p_type(LE) == PT_LOAD
            && segment.p_memsz(LE) == bytes
            && segment.p_vaddr(LE) >= KERNEL_HALF
    });
    Some(found?.p_vaddr(LE))
}

/// The build ID among `notes`, which are padded to words whatever the segment's alignment is.
pub(super) fn build_id(notes: &[u8]) -> Option<&[u8]> {
    let notes = NoteIterator::<Header>::new(LE, 4, notes).ok()?;
    let mut notes = notes.map_while(Result::ok);
    let found =
        notes.find(|note| note.n_type(LE) == NT_GNU_BUILD_ID && note.name_bytes() == b"GNU\0");
    found.map(|note| note.desc())
}
