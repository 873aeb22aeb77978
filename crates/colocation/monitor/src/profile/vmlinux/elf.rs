//! The parts of a 64-bit ELF file that the fingerprints need: loaded segments and the build ID.

use super::{unusable, KERNEL_HALF};
use crate::profile::ProfileError;
use alloc::vec::Vec;
use core::ops::Range;

pub(super) fn word(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// `PT_LOAD`.
const LOAD: u64 = 1;

/// A loaded part of the file.
pub(super) struct Segment {
    pub address: u64,
    pub file: Range<usize>,
}

/// A 64-bit ELF file (System V ABI, chapters 4 and 5).
pub(super) struct Elf<'a> {
    pub file: &'a [u8],
}

impl Elf<'_> {
    fn number<const N: usize>(&self, at: usize) -> Option<u64> {
        let bytes: &[u8; N] = self.file.get(at..)?.first_chunk()?;
        let mut word = [0; 8];
        word.get_mut(..N)?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(word))
    }

    /// The segments of the kernel's part of the address space, and the end of the ELF file.
    pub fn segments(&self) -> Result<(Vec<Segment>, usize), ProfileError> {
        if self.file.get(..6) != Some(b"\x7fELF\x02\x01") {
            return Err(unusable("it is not a 64-bit ELF file"));
        }
        self.read().ok_or(unusable("its tables lie outside the file"))
    }

    fn read(&self) -> Option<(Vec<Segment>, usize)> {
        let length = self.file.len() as u64;
        let (table, size, count) =
            (self.number::<8>(32)?, self.number::<2>(54)?, self.number::<2>(56)?);
        let sections =
            self.number::<8>(40)?.checked_add(self.number::<2>(58)? * self.number::<2>(60)?)?;
        let mut segments = Vec::new();
        let mut end = sections.max(table.checked_add(size * count)?);
        for number in 0..count {
            let at = usize::try_from(table.checked_add(number * size)?).ok()?;
            let offset = self.number::<8>(at.checked_add(8)?)?;
            let address = self.number::<8>(at.checked_add(16)?)?;
            let bytes = self.number::<8>(at.checked_add(32)?)?;
            let behind = offset.checked_add(bytes).filter(|&end| end <= length)?;
            end = end.max(behind);
            let kind = self.number::<4>(at)?;
            if kind == LOAD && address >= KERNEL_HALF {
                address.checked_add(bytes)?;
                segments.push(Segment { address, file: offset as usize..behind as usize });
            }
        }
        // The relocations follow the section headers.
        Some((segments, usize::try_from(end).ok().filter(|&end| end <= self.file.len())?))
    }
}

impl Elf<'_> {
    /// Address of the segment in the kernel's part of the address space that has `bytes` in memory. The file may end
    /// after the headers.
    pub fn kernel_segment(&self, bytes: u64) -> Option<u64> {
        if self.file.get(..6) != Some(b"\x7fELF\x02\x01") {
            return None;
        }
        let (table, size) = (self.number::<8>(32)?, self.number::<2>(54)?);
        (0..self.number::<2>(56)?).find_map(|number| {
            let at = usize::try_from(table.checked_add(number * size)?).ok()?;
            let address = self.number::<8>(at.checked_add(16)?)?;
            let found = self.number::<4>(at)? == LOAD
                && self.number::<8>(at.checked_add(40)?)? == bytes
                && address >= KERNEL_HALF;
            found.then_some(address)
        })
    }
}

impl<'a> Elf<'a> {
    /// The build ID in the notes.
    pub fn build_id(&self) -> Option<&'a [u8]> {
        /// `PT_NOTE`.
        const NOTE: u64 = 4;
        let (table, size) = (self.number::<8>(32)?, self.number::<2>(54)?);
        (0..self.number::<2>(56)?).find_map(|number| {
            let at = usize::try_from(table.checked_add(number * size)?).ok()?;
            let start = usize::try_from(self.number::<8>(at.checked_add(8)?)?).ok()?;
            let bytes = usize::try_from(self.number::<8>(at.checked_add(32)?)?).ok()?;
            let notes = self.file.get(start..start.checked_add(bytes)?)?;
            (self.number::<4>(at)? == NOTE).then(|| build_id(notes))?
        })
    }
}

/// The build ID among `notes` (name `GNU`, type 3). A note is: bytes of the name, bytes of the description, type, then
/// both, padded to words.
pub(super) fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    loop {
        let (head, rest) = notes.split_first_chunk::<12>()?;
        let number = |at: usize| head.get(at..).and_then(word).unwrap_or(0);
        let (name, described) = (number(0) as usize, number(4) as usize);
        let start = name.checked_next_multiple_of(4)?;
        let description = rest.get(start..start.checked_add(described)?)?;
        if number(8) == 3 && rest.starts_with(b"GNU\0") && name == 4 {
            return Some(description);
        }
        notes = rest.get(start + described.checked_next_multiple_of(4)?..)?;
    }
}
