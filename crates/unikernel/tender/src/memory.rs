//! The guest's memory, and every access of the tender to it.
//!
//! The guest may change every byte at any time. The tender therefore never makes a reference to it: `vm-memory`
//! copies by volatile accesses, and the guest cannot change the copy.

use crate::elf::Image;
use crate::error::{ensure, Context, Present, Result};
use crate::layout::{system, Layout, Piece, PAGE, SYSTEM_BYTES};
use kyozon_abi::unikernel::GUEST_SYSTEM_BASE;
use rustix::fs::{fcntl_add_seals, memfd_create, seek, MemfdFlags, SealFlags, SeekFrom};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::{Arc, OnceLock, RwLock};
use vm_memory::mmap::{MmapRegion, MmapRegionBuilder};
use vm_memory::{FileOffset, VolatileMemory, VolatileSlice};

/// A block of the host's memory. If it has a file, other processes can map it.
pub type Block = Arc<MmapRegion>;

/// Creates a file in memory with `bytes` zero bytes. It has no name in any file system.
///
/// # Errors
///
/// Linux refuses the file or its size.
pub fn memory_file(name: &CStr, bytes: u64) -> Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(memfd_create(name, flags).context("cannot make a file in memory")?);
    file.set_len(bytes).context("cannot reserve memory")?;
    // A process that shrinks a file that the tender has mapped would kill the tender.
    let _ = fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL);
    Ok(file)
}

/// Maps `bytes` zero bytes, which use no memory until they are touched. With `file`, other processes can map them.
///
/// # Errors
///
/// Linux refuses the mapping.
pub fn block(bytes: u64, file: Option<File>) -> Result<Block> {
    let builder =
        MmapRegionBuilder::new(bytes as usize).with_mmap_prot(libc::PROT_READ | libc::PROT_WRITE);
    let region = match file {
        Some(file) => builder
            .with_file_offset(FileOffset::new(file, 0))
            .with_mmap_flags(libc::MAP_SHARED | libc::MAP_NORESERVE),
        None => {
            builder.with_mmap_flags(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE)
        }
    };
    Ok(Arc::new(region.build().with_context(|| format!("cannot map {}M of memory", bytes >> 20))?))
}

/// Maps `bytes` bytes of a file that another process created, writable if `write`.
///
/// # Errors
///
/// Linux refuses the mapping.
pub fn shared_block(bytes: u64, file: File, write: bool) -> Result<Block> {
    let prot = if write { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
    let region = MmapRegionBuilder::new(bytes as usize)
        .with_mmap_prot(prot)
        .with_file_offset(FileOffset::new(file, 0))
        .with_mmap_flags(libc::MAP_SHARED | libc::MAP_NORESERVE)
        .build();
    Ok(Arc::new(region.with_context(|| format!("cannot map a region of {}M", bytes >> 20))?))
}

/// Size of the page tables of the smallest guest, in bytes.
pub const POPULATED_TABLES: u64 = 12 * 4096;

/// Allocates pages at once, which is cheaper than a page fault for each. A failure is harmless.
fn populate(block: &Block, offset: u64, bytes: u64) {
    if let Ok(slice) = block.get_slice(offset as usize, bytes as usize) {
        let at = slice.ptr_guard_mut().as_ptr().cast();
        // SAFETY: the call allocates pages of this block and does not change their content.
        unsafe { libc::madvise(at, slice.len(), libc::MADV_POPULATE_WRITE) };
    }
}

/// A range of guest addresses, and the memory behind it.
#[derive(Clone, Debug)]
struct Window {
    base: u64,
    bytes: u64,
    write: bool,
    block: Block,
    offset: u64,
}

/// The memory of one guest.
#[derive(Debug)]
pub struct Memory {
    /// The tender's pages, followed by the guest's own memory.
    pub block: Block,
    /// Block of the shared pieces. It belongs to the guest of this family that existed at the start.
    pub shared: Block,
    /// See [`Layout`].
    pub layout: Layout,
    /// Layout of the guest of this family that existed at the start.
    pub origin: Arc<Layout>,
    windows: RwLock<Vec<Window>>,
    lives: OnceLock<Arc<File>>,
}

/// Some of the bytes are not the guest's memory, or the guest may not write them.
#[derive(Debug, PartialEq, Eq)]
pub struct NotGuestMemory;

impl Memory {
    /// Creates a guest's memory and loads the image. With `files`, other processes can map it.
    ///
    /// # Errors
    ///
    /// Linux refuses the memory.
    pub fn new(image: &Image, file: &[u8], layout: Layout, files: bool) -> Result<Self> {
        let bytes = SYSTEM_BYTES + layout.bytes;
        let backing_file = files.then(|| memory_file(c"kyozon-guest", bytes)).transpose()?;
        let block = block(bytes, backing_file)?;
        // The tender writes these pages now. The guest touches the heap, the stack and the image's zeros later, if at
        // all.
        populate(&block, 0, system::USED);
        if !files {
            populate(&block, system::TABLES, POPULATED_TABLES);
        }
        for (segment, piece) in image.segments.iter().zip(&layout.pieces[1..]) {
            let filled = segment.base - piece.base + segment.file.len() as u64;
            populate(&block, piece.offset, filled.next_multiple_of(PAGE));
        }
        let origin = Arc::new(layout.clone());
        let memory = Self::from_blocks(block.clone(), block, layout, origin);
        for segment in &image.segments {
            memory.load(segment.base, &file[segment.file.clone()])?;
        }
        memory.load_tls(image, file)?;
        Ok(memory)
    }

    /// Creates the memory of a spawned peer. Private data has its initial content from the image's file.
    ///
    /// # Errors
    ///
    /// Linux refuses the memory.
    pub fn spawned(&self, image: &Image, file: &[u8], layout: Layout) -> Result<Self> {
        let bytes = SYSTEM_BYTES + layout.bytes;
        let files = self.has_file();
        let backing_file = files.then(|| memory_file(c"kyozon-peer", bytes)).transpose()?;
        let block = block(bytes, backing_file)?;
        populate(&block, 0, system::USED);
        if !files {
            populate(&block, system::TABLES, POPULATED_TABLES);
        }
        let memory = Self::from_blocks(block, self.shared.clone(), layout, self.origin.clone());
        for segment in image.segments.iter().filter(|s| s.private) {
            memory.load(segment.base, &file[segment.file.clone()])?;
        }
        memory.load_tls(image, file)?;
        Ok(memory)
    }

    fn from_blocks(block: Block, shared: Block, layout: Layout, origin: Arc<Layout>) -> Self {
        let window = |piece: &Piece| Window {
            base: piece.base,
            bytes: piece.bytes,
            write: piece.write,
            block: if piece.private { block.clone() } else { shared.clone() },
            offset: piece.offset,
        };
        let windows = RwLock::new(layout.pieces.iter().map(window).collect());
        Self { block, shared, layout, origin, windows, lives: OnceLock::new() }
    }

    /// Whether this memory belongs to a spawned peer.
    pub fn is_spawned(&self) -> bool {
        !Arc::ptr_eq(&self.block, &self.shared)
    }

    /// Whether other processes can map this memory, because guests run in processes.
    pub fn has_file(&self) -> bool {
        self.block.file_offset().is_some()
    }

    /// The block that contains a piece.
    pub fn block_of(&self, piece: &Piece) -> &Block {
        if piece.private {
            &self.block
        } else {
            &self.shared
        }
    }

    /// Writes the initial thread-local data and the thread pointer's word, which holds its own address (x86-64 psABI).
    fn load_tls(&self, image: &Image, file: &[u8]) -> Result<()> {
        let thread = self.layout.thread;
        self.load(self.layout.tls_template(image), &file[image.tls.file.clone()])?;
        self.load(thread, &thread.to_le_bytes())
    }

    /// Writes before the start, also to pieces that the guest cannot write.
    fn load(&self, address: u64, bytes: &[u8]) -> Result<()> {
        let inside = |p: &&Piece| address >= p.base && address - p.base < p.bytes;
        let piece = self
            .layout
            .pieces
            .iter()
            .find(inside)
            .present("no piece of the layout contains the address")?;
        let offset = piece.offset + (address - piece.base);
        self.block_of(piece).get_slice(offset as usize, bytes.len())?.copy_from(bytes);
        Ok(())
    }

    /// Adds `bytes` bytes of a region's block, from `offset` on, at the guest address `base`.
    pub fn add_window(&self, base: u64, block: &Block, offset: u64, bytes: u64, write: bool) {
        let window = Window { base, bytes, write, block: block.clone(), offset };
        self.windows.write().unwrap_or_else(|e| e.into_inner()).push(window);
    }

    /// Removes each window that [`Memory::add_window`] added in the `bytes` bytes at `base`.
    pub fn remove_windows(&self, base: u64, bytes: u64) {
        let mut windows = self.windows.write().unwrap_or_else(|e| e.into_inner());
        windows.retain(|w| w.base < base || w.base - base >= bytes);
    }

    /// Calls `with` for each slice of the `bytes` bytes at `address`, in order; never if some are not accessible.
    fn walk(
        &self,
        address: u64,
        bytes: u64,
        write: bool,
        mut with: impl FnMut(VolatileSlice<'_>),
    ) -> Result<(), NotGuestMemory> {
        let end = address.checked_add(bytes).ok_or(NotGuestMemory)?;
        let windows = self.windows.read().unwrap_or_else(|e| e.into_inner());
        let mut found = Vec::new();
        let mut at = address;
        while at < end {
            let usable = |w: &&Window| w.base <= at && at - w.base < w.bytes && (w.write || !write);
            let window = windows.iter().find(usable).ok_or(NotGuestMemory)?;
            let count = (end - at).min(window.bytes - (at - window.base));
            let offset = window.offset + (at - window.base);
            found.push(
                window
                    .block
                    .get_slice(offset as usize, count as usize)
                    .map_err(|_| NotGuestMemory)?,
            );
            at += count;
        }
        found.into_iter().for_each(&mut with);
        Ok(())
    }

    /// Copies bytes at the guest address `address` to `to`.
    ///
    /// # Errors
    ///
    /// The guest itself could not read all of them; then nothing is copied.
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), NotGuestMemory> {
        let mut done = 0;
        let bytes = to.len() as u64;
        self.walk(address, bytes, false, |slice| done += slice.copy_to(&mut to[done..]))
    }

    /// Copies `from` to the guest address `address`.
    ///
    /// # Errors
    ///
    /// The guest itself could not write all of the bytes; then nothing is copied.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), NotGuestMemory> {
        let mut done = 0;
        self.walk(address, from.len() as u64, true, |slice| {
            slice.copy_from(&from[done..done + slice.len()]);
            done += slice.len();
        })
    }

    /// The 8-byte word at the guest address `address`.
    ///
    /// # Errors
    ///
    /// The guest itself could not read it.
    pub fn word(&self, address: u64) -> Result<u64, NotGuestMemory> {
        let mut word = [0; 8];
        self.read(address, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    /// Returns pages of the heap to the host; they become zero. `address` and `bytes` are multiples of a page.
    ///
    /// # Errors
    ///
    /// Some of the bytes are outside the heap.
    pub fn discard(&self, address: u64, bytes: u64) -> Result<(), NotGuestMemory> {
        let heap = self.layout.heap;
        let offset = address.checked_sub(heap.base).ok_or(NotGuestMemory)?;
        if offset.checked_add(bytes).is_none_or(|end| end > heap.bytes) {
            return Err(NotGuestMemory);
        }
        let advice = match self.shared.file_offset() {
            Some(_) => libc::MADV_REMOVE,
            None => libc::MADV_DONTNEED,
        };
        let offset = self.origin.pieces[0].offset + offset;
        let slice =
            self.shared.get_slice(offset as usize, bytes as usize).map_err(|_| NotGuestMemory)?;
        // SAFETY: the pages belong to this block, to which no reference exists; they stay mapped and become zero.
        unsafe { libc::madvise(slice.ptr_guard_mut().as_ptr().cast(), slice.len(), advice) };
        Ok(())
    }

    /// The first address from `address` on, and before `end`, at which there may be anything but zeros; `end` if there
    /// is none. Both lie in one range of [`Memory::readable`]. Reading from a hole of a file in memory would fill it.
    pub fn next_data(&self, address: u64, end: u64) -> u64 {
        let windows = self.windows.read().unwrap_or_else(|e| e.into_inner());
        let inside = |w: &&Window| w.base <= address && address - w.base < w.bytes;
        let Some(window) = windows.iter().find(inside) else { return end };
        let Some(file) = window.block.file_offset() else { return address };
        let offset = window.offset + (address - window.base);
        match seek(file.file(), SeekFrom::Data(offset)) {
            Ok(data) => address.saturating_add(data.saturating_sub(offset)).min(end),
            Err(Errno::NXIO) => end,
            Err(_) => address,
        }
    }

    /// All ranges that the guest can read: address, size in bytes, and whether it can write them.
    pub fn readable(&self) -> Vec<(u64, u64, bool)> {
        let windows = self.windows.read().unwrap_or_else(|e| e.into_inner());
        windows.iter().map(|w| (w.base, w.bytes, w.write)).collect()
    }

    /// Maps the group's table of peers into the tender's pages, before the guest runs.
    ///
    /// # Errors
    ///
    /// Linux refuses the mapping; an error of the tender itself if a table is mapped already.
    pub fn set_lives(&self, table: &Arc<File>) -> Result<()> {
        self.lives.set(table.clone()).ok().present("the table of peers is mapped twice")?;
        let page = self.block.get_slice(system::PEERS as usize, PAGE as usize)?;
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        // SAFETY: the mapping replaces one page of this block, to which no reference exists, and which only the guest
        // reads from now on. The block unmaps it with its other pages.
        let mapped = unsafe {
            let at = page.ptr_guard_mut().as_ptr().cast();
            libc::mmap(at, page.len(), libc::PROT_READ, flags, table.as_raw_fd(), 0)
        };
        ensure!(
            Internal,
            mapped != libc::MAP_FAILED,
            "cannot map the table of peers: {}",
            std::io::Error::last_os_error()
        );
        Ok(())
    }

    /// The table of [`Memory::set_lives`].
    pub fn lives(&self) -> Option<&File> {
        self.lives.get().map(Arc::as_ref)
    }

    /// Writes bytes at an offset in the tender's pages.
    ///
    /// # Errors
    ///
    /// The bytes are outside the block; an error of the tender itself.
    pub fn put_system(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.block.get_slice(offset as usize, bytes.len())?.copy_from(bytes);
        Ok(())
    }

    /// Copies `N` bytes at an offset in the tender's pages. Outside the block they are zero.
    pub fn get_system<const N: usize>(&self, offset: u64) -> [u8; N] {
        let mut bytes = [0; N];
        if let Ok(slice) = self.block.get_slice(offset as usize, N) {
            slice.copy_to(&mut bytes);
        }
        bytes
    }
}

/// The guest address of an offset in the tender's pages.
pub fn system_address(offset: u64) -> u64 {
    GUEST_SYSTEM_BASE + offset
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf;
    use kyozon_abi::unikernel::*;

    fn memory(files: bool) -> Memory {
        let file = elf::tests::image();
        let image = elf::parse(&file).unwrap();
        let layout = Layout::new(&image, 1 << 20).unwrap();
        Memory::new(&image, &file, layout, files).unwrap()
    }

    #[test]
    fn accesses_respect_the_guests_rights() {
        let memory = memory(false);
        let text = GUEST_IMAGE_BASE;
        let mut buffer = [7; 0x2000];
        // From code into data on the next page. Code is not writable.
        assert_eq!(memory.read(text, &mut buffer), Ok(()));
        assert!(buffer.iter().all(|b| *b == 0));
        assert_eq!(memory.write(text, &[1]), Err(NotGuestMemory));
        assert_eq!(memory.write(text + 0xfff, &[1, 2]), Err(NotGuestMemory));
        assert_eq!(memory.write(text + 0x1000, &[1, 2]), Ok(()));
        assert_eq!(memory.word(text + 0xfff), Ok(0x02_0100));
        let stack = memory.layout.stack;
        for outside in [0, stack.base - 1, GUEST_STACK_TOP - 7, GUEST_SYSTEM_BASE, u64::MAX - 3] {
            assert_eq!(memory.word(outside), Err(NotGuestMemory), "{outside:#x}");
        }
        assert_eq!(memory.word(GUEST_STACK_TOP - 8), Ok(0));
        assert_eq!(memory.word(memory.layout.thread), Ok(memory.layout.thread));
        assert_eq!(memory.read(u64::MAX, &mut []), Ok(()));
    }

    #[test]
    fn removed_regions_are_inaccessible() {
        let (memory, region) = (memory(false), block(2 * PAGE, None).unwrap());
        memory.add_window(REGION_BASE, &region, 0, PAGE, false);
        memory.add_window(REGION_BASE + PAGE, &region, PAGE, PAGE, true);
        assert_eq!(memory.write(REGION_BASE + PAGE, &[9]), Ok(()));
        assert_eq!(memory.write(REGION_BASE, &[9]), Err(NotGuestMemory));
        memory.remove_windows(REGION_BASE, 2 * PAGE);
        assert_eq!(memory.word(REGION_BASE + PAGE), Err(NotGuestMemory));
        assert_eq!(memory.readable().len(), memory.layout.pieces.len());
    }

    #[test]
    fn discarded_pages_are_zero() {
        for files in [false, true] {
            let memory = memory(files);
            let at = GUEST_HEAP_BASE + PAGE;
            memory.write(at, &[5; 8]).unwrap();
            assert_eq!(memory.discard(at, PAGE), Ok(()));
            assert_eq!(memory.word(at), Ok(0));
            for (address, bytes) in [(at, u64::MAX), (0, PAGE), (GUEST_STACK_TOP - PAGE, PAGE)] {
                assert_eq!(memory.discard(address, bytes), Err(NotGuestMemory));
            }
            assert_eq!(
                memory.discard(GUEST_HEAP_BASE, memory.layout.heap.bytes + PAGE),
                Err(NotGuestMemory)
            );
        }
    }

    #[test]
    fn zeros_of_the_image_are_not_allocated() {
        let file = elf::tests::image_with_zeros(64 << 20);
        let image = elf::parse(&file).unwrap();
        let layout = Layout::new(&image, 128 << 20).unwrap();
        for files in [false, true] {
            let memory = Memory::new(&image, &file, layout.clone(), files).unwrap();
            let mut pages = vec![0_u8; memory.block.size().div_ceil(PAGE as usize)];
            // SAFETY: the call writes one byte for each page of this block to `pages`.
            let done = unsafe {
                libc::mincore(memory.block.as_ptr().cast(), memory.block.size(), pages.as_mut_ptr())
            };
            assert_eq!(done, 0);
            let resident = pages.iter().filter(|page| **page & 1 != 0).count();
            assert!(resident < 64, "{resident} pages, {files}");
        }
    }
}
