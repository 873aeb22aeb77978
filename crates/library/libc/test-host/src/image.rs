//! Maps a static position-independent program.

use object::elf::{
    FileHeader64, ProgramFlags, EM_X86_64, ET_DYN, PF_R, PF_W, PF_X, PT_INTERP, PT_LOAD,
};
use object::read::elf::{FileHeader, ProgramHeader};
use object::LittleEndian as LE;
use std::ffi::c_int;
use std::io;
use std::ptr::{copy_nonoverlapping, null_mut};

/// Size of a page in bytes.
const PAGE: u64 = 4096;
/// Maximum size of a program in memory, in bytes.
const MAX_BYTES: u64 = 1 << 32;

/// A mapped program. It stays mapped until the process ends.
#[derive(Debug)]
pub struct Image {
    /// Address of the first instruction.
    pub entry: usize,
    /// Address of the program headers.
    pub headers: usize,
    /// Number of the program headers.
    pub header_count: usize,
}

/// A part of the file with its place in memory.
struct Segment<'a> {
    /// First address, relative to the program.
    start: u64,
    /// Size in bytes; those that the file lacks are zero.
    bytes: u64,
    data: &'a [u8],
    /// Offset of `data` in the file.
    offset: u64,
    flags: ProgramFlags,
}

impl Segment<'_> {
    /// First page, and the one after the last.
    fn pages(&self) -> (u64, u64) {
        (self.start & !(PAGE - 1), (self.start + self.bytes).next_multiple_of(PAGE))
    }

    /// Where the bytes of the file from `offset` on lie, if they are in this segment.
    fn place_of(&self, offset: u64, bytes: u64) -> Option<u64> {
        let skipped = offset.checked_sub(self.offset)?;
        let end = skipped.checked_add(bytes)?;
        (end <= self.data.len() as u64).then(|| self.start + skipped)
    }

    /// Puts the segment into the reserved memory at `base`.
    fn fill(&self, base: *mut u8) -> Result<(), String> {
        let (first, end) = self.pages();
        let protect = |rights: c_int| {
            // SAFETY: The pages are in the reserved memory.
            let done = unsafe {
                libc::mprotect(base.add(first as usize).cast(), (end - first) as usize, rights)
            };
            let problem = || format!("cannot protect memory: {}", io::Error::last_os_error());
            (done == 0).then_some(()).ok_or_else(problem)
        };
        protect(libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: The segment is at least as large as its data, and its pages are writable.
        unsafe {
            copy_nonoverlapping(self.data.as_ptr(), base.add(self.start as usize), self.data.len());
        }
        let pairs = [(PF_R, libc::PROT_READ), (PF_W, libc::PROT_WRITE), (PF_X, libc::PROT_EXEC)];
        let granted = pairs.iter().filter(|(flag, _)| self.flags.0 & flag.0 != 0);
        protect(granted.fold(0, |rights, (_, right)| rights | right))
    }
}

impl Image {
    /// Maps the program in `file`.
    pub fn map(file: &[u8]) -> Result<Self, String> {
        let header = FileHeader64::<LE>::parse(file).map_err(|error| error.to_string())?;
        let headers = header.program_headers(LE, file).map_err(|error| error.to_string())?;
        let is_dynamic = headers.iter().any(|header| header.p_type(LE) == PT_INTERP);
        if header.e_type(LE) != ET_DYN || header.e_machine(LE) != EM_X86_64 || is_dynamic {
            return Err("not a static position-independent program: link it with kyozon-cc".into());
        }
        let segments = segments(headers, file)?;
        let size = segments.last().ok_or("no segment")?.pages().1;
        let header_offset = header.e_phoff(LE);
        let header_bytes = size_of_val(headers) as u64;
        let place = segments.iter().find_map(|one| one.place_of(header_offset, header_bytes));
        let place = place.ok_or("the program headers are in no segment")?;
        if header.e_entry(LE) >= size {
            return Err("the entry is outside the program".into());
        }
        let base = reserve(size)?;
        for segment in &segments {
            segment.fill(base)?;
        }
        let at = |address: u64| base as usize + address as usize;
        Ok(Self { entry: at(header.e_entry(LE)), headers: at(place), header_count: headers.len() })
    }
}

/// The loadable segments. They are sorted, share no page, and their sums do not overflow.
fn segments<'a, H: ProgramHeader<Endian = LE, Word = u64>>(
    headers: &[H],
    file: &'a [u8],
) -> Result<Vec<Segment<'a>>, String> {
    let mut segments: Vec<Segment<'a>> = Vec::new();
    for header in headers.iter().filter(|header| header.p_type(LE) == PT_LOAD) {
        let segment = Segment {
            start: header.p_vaddr(LE),
            bytes: header.p_memsz(LE),
            data: header.data(LE, file).map_err(|()| "the file is truncated")?,
            offset: header.p_offset(LE),
            flags: header.p_flags(LE),
        };
        let fits = segment.start < MAX_BYTES && segment.bytes < MAX_BYTES;
        if !fits || segment.data.len() as u64 > segment.bytes {
            return Err("a segment has a wrong size".into());
        }
        if segments.last().is_some_and(|last| last.pages().1 > segment.pages().0) {
            return Err("segments share a page or are not sorted".into());
        }
        segments.push(segment);
    }
    Ok(segments)
}

/// Inaccessible memory of `bytes` bytes.
fn reserve(bytes: u64) -> Result<*mut u8, String> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: The kernel chooses free addresses.
    let base = unsafe { libc::mmap(null_mut(), bytes as usize, libc::PROT_NONE, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(format!("cannot reserve memory: {}", io::Error::last_os_error()));
    }
    Ok(base.cast())
}
