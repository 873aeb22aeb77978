//! Task images: a header page, then a static ELF file linked at `TASK_BASE`.
//!
//! The file is untrusted. An accepted segment lies within the file, occupies whole pages of the task's image range that
//! no other segment has, and is not both writable and executable. Tool Interface Standard ELF 1.2; System V ABI for
//! x86-64, 4 and 5.

use crate::memory::PAGE;
use kyozon_abi::layer::{IMAGE_MAGIC, IMAGE_TASK, LAYER_VERSION};
use kyozon_abi::task::{TASK_BASE, TASK_IMAGE_END};

/// Maximum number of loaded segments.
pub const SEGMENTS: usize = 8;
const HEADER_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;
const LOAD: u32 = 1;
const EXECUTE: u32 = 1;
const WRITE: u32 = 2;

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
        let head = file.get(..HEADER_BYTES).ok_or("the file is too short")?;
        // Class 64, little endian, version 1; executable, x86-64.
        if head[..7] != [0x7f, b'E', b'L', b'F', 2, 1, 1]
            || number(head, 16, 2) != Some(2)
            || number(head, 18, 2) != Some(62)
        {
            return Err("not a static x86-64 executable");
        }
        let word = |at, bytes| number(head, at, bytes).unwrap_or(0);
        let (entry, table, size, count) = (word(24, 8), word(32, 8), word(54, 2), word(56, 2));
        if size != SEGMENT_BYTES as u64 || count > 64 {
            return Err("the segment table has an unknown format");
        }
        let mut image = Self { entry, ..Self::default() };
        for i in 0..count {
            let at = table.checked_add(i * size).and_then(|at| usize::try_from(at).ok());
            let entry = at.and_then(|at| file.get(at..)?.get(..SEGMENT_BYTES));
            let entry = entry.ok_or("the segment table is outside the file")?;
            if number(entry, 0, 4) == Some(u64::from(LOAD)) {
                image.add(file, entry)?;
            }
        }
        let executable = image
            .segments()
            .iter()
            .any(|s| s.execute && entry.wrapping_sub(s.address) < s.bytes.len() as u64);
        executable.then_some(image).ok_or("the entry is not in executable code")
    }

    fn add(&mut self, file: &'a [u8], entry: &[u8]) -> Result<(), &'static str> {
        let word = |at, bytes| number(entry, at, bytes).unwrap_or(0);
        let flags = word(4, 4) as u32;
        let (offset, address, in_file, in_memory) =
            (word(8, 8), word(16, 8), word(32, 8), word(40, 8));
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
        if flags & (WRITE | EXECUTE) == WRITE | EXECUTE {
            return Err("a segment is writable and executable");
        }
        let bytes = usize::try_from(offset).ok().and_then(|from| {
            let bytes = usize::try_from(in_file).ok()?;
            file.get(from..)?.get(..bytes)
        });
        let bytes =
            bytes.filter(|_| in_file <= in_memory).ok_or("a segment is outside the file")?;
        let segment = Segment {
            address,
            bytes,
            pages: in_memory.div_ceil(PAGE),
            write: flags & WRITE != 0,
            execute: flags & EXECUTE != 0,
        };
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
