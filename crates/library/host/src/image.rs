//! The kernel image: an ELF file, position-independent and without imports.

use alloc::{string::String, vec::Vec};
use core::fmt;
use object::elf::{
    FileHeader64, DT_JMPREL, DT_NEEDED, DT_RELA, DT_RELASZ, DT_RELR, DT_RELRSZ, EM_X86_64, ET_DYN,
    PF_W, PF_X, PT_DYNAMIC, PT_LOAD, R_X86_64_RELATIVE,
};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::Endianness;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Why a file is not a kernel image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadImage(String);

impl fmt::Display for BadImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a kernel image: {}", self.0)
    }
}

impl core::error::Error for BadImage {}

fn bad<T>(why: &str) -> Result<T, BadImage> {
    Err(BadImage(why.into()))
}

/// A part of the file that belongs into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Where it belongs, in bytes from the start of the kernel's memory.
    pub address: u64,
    /// Where it is in the file.
    pub offset: u64,
    /// Bytes in the file.
    pub file_bytes: u64,
    /// Bytes in memory; those after the file's are zero.
    pub memory_bytes: u64,
    /// The kernel writes to it.
    pub write: bool,
    /// The kernel executes it.
    pub execute: bool,
}

/// A checked image.
#[derive(Debug, Clone)]
pub struct Image {
    /// What belongs into memory, in the order of addresses, without overlap.
    pub segments: Vec<Segment>,
    /// Bytes from the start of the kernel's memory to the image's end, whole pages.
    pub bytes: u64,
    /// The entry, in bytes from the start.
    pub entry: u64,
    /// Words to which the load address must be added: bytes from the start, ascending within each kind of table.
    pub relocations: Vec<Relocation>,
}

/// A word that depends on the load address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relocation {
    /// Where the word is.
    pub address: u64,
    /// What it holds if the load address is 0.
    pub value: u64,
}

impl Image {
    /// Checks `file` and finds what the loader needs.
    pub fn parse(file: &[u8]) -> Result<Self, BadImage> {
        let Ok(header) = FileHeader64::<Endianness>::parse(file) else {
            return bad("no 64-bit ELF header");
        };
        let Ok(endian) = header.endian() else { return bad("unknown byte order") };
        if endian != Endianness::Little
            || header.e_machine(endian) != EM_X86_64
            || header.e_type(endian) != ET_DYN
        {
            return bad("not a position-independent file for x86-64");
        }
        let Ok(headers) = header.program_headers(endian, file) else {
            return bad("broken program headers");
        };
        let mut segments: Vec<Segment> = Vec::new();
        let mut end = 0;
        for header in headers.iter().filter(|h| h.p_type(endian) == PT_LOAD) {
            let segment = Segment {
                address: header.p_vaddr(endian),
                offset: header.p_offset(endian),
                file_bytes: header.p_filesz(endian),
                memory_bytes: header.p_memsz(endian),
                write: header.p_flags(endian) & PF_W == PF_W,
                execute: header.p_flags(endian) & PF_X == PF_X,
            };
            let fits = segment
                .offset
                .checked_add(segment.file_bytes)
                .is_some_and(|end| end <= file.len() as u64);
            let aligned = segment.address % PAGE == segment.offset % PAGE;
            if !fits
                || !aligned
                || segment.file_bytes > segment.memory_bytes
                || segment.address / PAGE * PAGE < end
            {
                return bad("a segment outside the file, unaligned, or in another one's page");
            }
            end = match segment.address.checked_add(segment.memory_bytes) {
                Some(end) if end < 1 << 30 => end.next_multiple_of(PAGE),
                _ => return bad("a segment beyond 1 GiB"),
            };
            segments.push(segment);
        }
        let entry = header.e_entry(endian);
        if !segments.iter().any(|s| s.execute && entry.wrapping_sub(s.address) < s.file_bytes) {
            return bad("the entry is not in its code");
        }
        let mut image = Self { segments, bytes: end, entry, relocations: Vec::new() };
        let Some(dynamic) = headers.iter().find(|h| h.p_type(endian) == PT_DYNAMIC) else {
            return bad("no relocation table");
        };
        let Ok(Some(entries)) = dynamic.dynamic(endian, file) else {
            return bad("a broken dynamic section");
        };
        let value = |tag| entries.iter().find(|e| e.d_tag(endian) == tag).map(|e| e.d_val(endian));
        if value(DT_NEEDED).is_some() || value(DT_JMPREL).is_some() {
            return bad("it imports symbols");
        }
        image.read_rela(file, value(DT_RELA), value(DT_RELASZ))?;
        image.read_relr(file, value(DT_RELR), value(DT_RELRSZ))?;
        Ok(image)
    }

    /// The file's bytes at an address of the image.
    fn at<'a>(&self, file: &'a [u8], address: u64, bytes: u64) -> Result<&'a [u8], BadImage> {
        let inside = |s: &&Segment| {
            address >= s.address
                && bytes <= s.file_bytes
                && address - s.address <= s.file_bytes - bytes
        };
        let Some(segment) = self.segments.iter().find(inside) else {
            return bad("a relocation outside its segments");
        };
        let offset = (segment.offset + (address - segment.address)) as usize;
        Ok(&file[offset..offset + bytes as usize])
    }

    fn word(&self, file: &[u8], address: u64) -> Result<u64, BadImage> {
        let bytes = self.at(file, address, 8)?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("8 bytes")))
    }

    fn relocate(&mut self, file: &[u8], address: u64, value: u64) -> Result<(), BadImage> {
        self.at(file, address, 8)?;
        if value > self.bytes {
            return bad("a relocation to an address outside the image");
        }
        self.relocations.push(Relocation { address, value });
        Ok(())
    }

    fn read_rela(
        &mut self,
        file: &[u8],
        table: Option<u64>,
        bytes: Option<u64>,
    ) -> Result<(), BadImage> {
        let (Some(table), Some(bytes)) = (table, bytes) else { return Ok(()) };
        let table = self.at(file, table, bytes)?;
        for entry in table.chunks_exact(24) {
            let field =
                |i: usize| u64::from_le_bytes(entry[i * 8..][..8].try_into().expect("8 bytes"));
            if field(1) != u64::from(R_X86_64_RELATIVE.0) {
                return bad("a relocation that is not relative");
            }
            self.relocate(file, field(0), field(2))?;
        }
        Ok(())
    }

    /// Packed relative relocations: an even word is an address, an odd one a bitmap of the 63 words that follow.
    fn read_relr(
        &mut self,
        file: &[u8],
        table: Option<u64>,
        bytes: Option<u64>,
    ) -> Result<(), BadImage> {
        let (Some(table), Some(bytes)) = (table, bytes) else { return Ok(()) };
        let table = self.at(file, table, bytes)?;
        let mut next = 0u64;
        for entry in table.chunks_exact(8) {
            let entry = u64::from_le_bytes(entry.try_into().expect("8 bytes"));
            if entry & 1 == 0 {
                let value = self.word(file, entry)?;
                self.relocate(file, entry, value)?;
                next = entry.wrapping_add(8);
                continue;
            }
            for bit in (0..63).filter(|bit| entry >> (bit + 1) & 1 != 0) {
                let address = next.wrapping_add(8 * bit);
                let value = self.word(file, address)?;
                self.relocate(file, address, value)?;
            }
            next = next.wrapping_add(8 * 63);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
