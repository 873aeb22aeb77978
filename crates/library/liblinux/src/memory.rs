//! The kernel's memory: one range of this process, which begins with the kernel's image.

use kyozon_abi::library::LIBRARY_MEMORY_ALIGN;
use kyozon_library_host::image::{Image, PAGE};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

/// Where a kernel's memory begins, at the least: above what programs put at low addresses. At boot, Linux looks at
/// every 4 MiB below its memory (`init_unavailable_range`). At the addresses that the host chooses, below 128 TiB, that
/// takes longer than the rest of the boot.
const START: usize = 64 << 30;
/// The start is a random multiple of this, and below 1 TiB, where the files of `kyozon exec` begin.
const STEP: usize = 8 << 20;

/// A mapped kernel: image and memory. Unmapped when dropped.
pub struct Memory {
    map: *mut u8,
    map_bytes: usize,
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the mapping belongs to no thread.
unsafe impl Send for Memory {}
// SAFETY: this type gives out addresses only.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps `bytes`, a multiple of the interface's alignment, and in it the image from its file. Pages take memory when
    /// the kernel touches them: huge pages if the host has them.
    pub fn map(file: &File, image: &Image, bytes: usize) -> io::Result<Self> {
        let map_bytes = bytes + LIBRARY_MEMORY_ALIGN as usize;
        // SAFETY: a new mapping. The address is a hint: if it is taken, the host chooses another.
        let map = unsafe {
            libc::mmap(
                ptr::without_provenance_mut(low()),
                map_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let map = map.cast::<u8>();
        let start = map.wrapping_add(map.align_offset(LIBRARY_MEMORY_ALIGN as usize));
        let memory = Self { map, map_bytes, start, bytes };
        // Linux maps its memory by large pages. Without them, copies to and from its page cache wait for TLB misses.
        // SAFETY: the range is in the mapping above. On a host without huge pages the call fails and changes nothing.
        unsafe { libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE) };
        for segment in image.segments.iter().filter(|s| s.file_bytes > 0) {
            let before = segment.address % PAGE;
            let write = if segment.write { libc::PROT_WRITE } else { 0 };
            let execute = if segment.execute { libc::PROT_EXEC } else { 0 };
            // SAFETY: Image::parse checked that segments lie in whole pages of their own within image.bytes, which the
            // caller compared with the memory's size: the range is in the mapping above.
            let at = unsafe {
                libc::mmap(
                    start.add((segment.address - before) as usize).cast(),
                    (segment.file_bytes + before) as usize,
                    libc::PROT_READ | write | execute,
                    libc::MAP_PRIVATE | libc::MAP_FIXED,
                    file.as_raw_fd(),
                    (segment.offset - before) as i64,
                )
            };
            if at == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            // The rest of the last page holds what follows in the file.
            let end = segment.address + segment.file_bytes;
            if segment.write {
                // SAFETY: the range ends with the page that was just mapped for writing.
                unsafe {
                    ptr::write_bytes(
                        start.add(end as usize),
                        0,
                        (end.next_multiple_of(PAGE) - end) as usize,
                    )
                };
            }
        }
        for relocation in &image.relocations {
            // SAFETY: Image::parse checked that the word is in a segment. Only segments for writing have relocations:
            // the linker refuses others (-z text).
            unsafe {
                let word = start.add(relocation.address as usize).cast::<u64>();
                word.write_unaligned(start as u64 + relocation.value);
            }
        }
        Ok(memory)
    }

    /// Where the kernel's memory starts.
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A file's bytes, mapped for reading: most pages of an image are never looked at.
pub struct View {
    map: *mut u8,
    bytes: usize,
}

impl View {
    /// Maps a whole file. It must not get shorter while it is in use, which holds for a running kernel's image anyway.
    pub fn map(file: &File) -> io::Result<Self> {
        let status = file.metadata()?;
        if status.is_dir() {
            return Err(io::Error::from_raw_os_error(libc::EISDIR));
        }
        let bytes = usize::try_from(status.len()).map_err(io::Error::other)?;
        if bytes == 0 {
            return Ok(Self { map: ptr::null_mut(), bytes });
        }
        let (rights, how) = (libc::PROT_READ, libc::MAP_PRIVATE);
        // SAFETY: a new mapping at an address of the system's choice.
        let map = unsafe { libc::mmap(ptr::null_mut(), bytes, rights, how, file.as_raw_fd(), 0) };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { map: map.cast(), bytes })
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &[u8] {
        if self.map.is_null() {
            return &[];
        }
        // SAFETY: the mapping lives as long as this value; nobody changes an image in place: scripts replace the file.
        unsafe { std::slice::from_raw_parts(self.map, self.bytes) }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if !self.map.is_null() {
            // SAFETY: the mapping is this value's own.
            unsafe { libc::munmap(self.map.cast(), self.bytes) };
        }
    }
}

/// An address for a kernel's memory.
fn low() -> usize {
    let mut random = 0u16;
    // SAFETY: the buffer is valid. Without random bytes the memory begins at START, or elsewhere if that is taken.
    unsafe { libc::getrandom((&raw mut random).cast(), size_of::<u16>(), libc::GRND_NONBLOCK) };
    START + usize::from(random) * STEP
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and what was in it is no longer used.
        unsafe { libc::munmap(self.map.cast(), self.map_bytes) };
    }
}

#[cfg(test)]
mod tests;
