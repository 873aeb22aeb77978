//! Task images: a header page, then a static ELF file linked at `TASK_BASE`.
//!
//! The file is untrusted. An accepted segment lies within the file, occupies whole pages of the task's image range that
//! no other segment has, and is not both writable and executable. Tool Interface Standard ELF 1.2; System V ABI for
//! x86-64, 4 and 5. The crate `object` describes the headers; its readers would need an allocator, so this module finds
//! the headers itself.

use crate::memory::PAGE;
use kyozon_abi::layer::{IMAGE_MAGIC, IMAGE_TASK, LAYER_VERSION};
use kyozon_abi::task::{TASK_BASE, TASK_IMAGE_END};
use object::elf::{
    FileHeader64, ProgramHeader64, ELFCLASS64, ELFDATA2LSB, ELFMAG, EM_X86_64, ET_EXEC, EV_CURRENT,
    PF_W, PF_X, PT_LOAD,
};
use object::{pod, LittleEndian as LE};

/// Maximum number of loaded segments.
pub const SEGMENTS: usize = 8;
/// Maximum number of entries in the segment table.
const ENTRIES: u16 = 64;

/// A loaded part of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Virtual address, a multiple of 4096.
    pub address: u64,
    /// Initial content; zeros follow.
    pub bytes: &'a [u8],
    /// Size in pages.
    pub pages: u64,
    /// Whether the task may write to it.
    pub write: bool,
    /// Whether the task may execute it.
    pub execute: bool,
}

/// A task's image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Image<'a> {
    segments: [Segment<'a>; SEGMENTS],
    count: usize,
    /// Address of the first instruction.
    pub entry: u64,
}

impl<'a> Image<'a> {
    /// The loaded segments.
    pub fn segments(&self) -> &[Segment<'a>] {
        &self.segments[..self.count]
    }

    /// Parses `image`. The error says what is wrong with it.
    pub fn read(image: &'a [u8]) -> Result<Self, &'static str> {
        let header = number(image, 0, 8) == Some(IMAGE_MAGIC)
            && number(image, 8, 4) == Some(u64::from(LAYER_VERSION))
            && number(image, 12, 4) == Some(u64::from(IMAGE_TASK));
        if !header {
            return Err("not a task image");
        }
        let bytes = number(image, 40, 8).and_then(|bytes| usize::try_from(bytes).ok());
        let file = image.get(PAGE as usize..).and_then(|file| file.get(..bytes?));
        Self::read_elf(file.ok_or("the file is too short")?)
    }

    fn read_elf(file: &'a [u8]) -> Result<Self, &'static str> {
        let (head, _) =
            pod::from_bytes::<FileHeader64<LE>>(file).map_err(|()| "the file is too short")?;
        let ident = &head.e_ident;
        if (ident.magic, ident.class, ident.data, ident.version)
            != (ELFMAG, ELFCLASS64, ELFDATA2LSB, EV_CURRENT)
            || head.e_type.get(LE) != ET_EXEC
            || head.e_machine.get(LE) != EM_X86_64
        {
            return Err("not a static x86-64 executable");
        }
        let (entry, table, count) =
            (head.e_entry.get(LE), head.e_phoff.get(LE), head.e_phnum.get(LE));
        if usize::from(head.e_phentsize.get(LE)) != size_of::<ProgramHeader64<LE>>()
            || count > ENTRIES
        {
            return Err("the segment table has an unknown format");
        }
        let table = usize::try_from(table).ok().and_then(|at| {
            pod::slice_from_bytes::<ProgramHeader64<LE>>(file.get(at..)?, count.into()).ok()
        });
        let (table, _) = table.ok_or("the segment table is outside the file")?;
        let mut image = Self { entry, ..Self::default() };
        for entry in table.iter().filter(|entry| entry.p_type.get(LE) == PT_LOAD) {
            image.add(file, entry)?;
        }
        let executable = image
            .segments()
            .iter()
            .any(|s| s.execute && entry.wrapping_sub(s.address) < s.bytes.len() as u64);
        executable.then_some(image).ok_or("the entry is not in executable code")
    }

    fn add(&mut self, file: &'a [u8], entry: &ProgramHeader64<LE>) -> Result<(), &'static str> {
        let flags = entry.p_flags.get(LE);
        let (write, execute) = (flags.contains(PF_W), flags.contains(PF_X));
        let (offset, address) = (entry.p_offset.get(LE), entry.p_vaddr.get(LE));
        let (in_file, in_memory) = (entry.p_filesz.get(LE), entry.p_memsz.get(LE));
        if in_memory == 0 {
            return Ok(());
        }
        let end =
            address.checked_add(in_memory).ok_or("a segment is outside the task's image range")?;
        if address < TASK_BASE || end > TASK_IMAGE_END {
            return Err("a segment is outside the task's image range");
        }
        if address % PAGE != 0 {
            return Err("a segment does not start on a page");
        }
        if write && execute {
            return Err("a segment is writable and executable");
        }
        let bytes = usize::try_from(offset).ok().and_then(|from| {
            let bytes = usize::try_from(in_file).ok()?;
            file.get(from..)?.get(..bytes)
        });
        let bytes =
            bytes.filter(|_| in_file <= in_memory).ok_or("a segment is outside the file")?;
        let segment = Segment { address, bytes, pages: in_memory.div_ceil(PAGE), write, execute };
        let apart = |other: &Segment<'_>| {
            segment.address >= other.address + other.pages * PAGE
                || other.address >= segment.address + segment.pages * PAGE
        };
        if !self.segments().iter().all(apart) {
            return Err("segments overlap");
        }
        *self.segments.get_mut(self.count).ok_or("there are too many segments")? = segment;
        self.count += 1;
        Ok(())
    }
}

fn number(from: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let part = from.get(at..)?.get(..bytes)?;
    Some(part.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

#[cfg(test)]
pub(crate) mod tests;
