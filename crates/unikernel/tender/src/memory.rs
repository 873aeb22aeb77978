//! The guest's memory, and every access of the tender's to it.
//!
//! The guest may change every byte at any time. The tender therefore never makes a reference to it: `vm-memory`
//! copies by volatile accesses, and what was copied is the tender's own.

use crate::elf::Image;
use crate::error::{Context, Present, Result};
use crate::layout::{system, Layout, Piece, SYSTEM_BYTES};
use kyozon_abi::unikernel::GUEST_SYSTEM_BASE;
use rustix::fs::{fcntl_add_seals, memfd_create, MemfdFlags, SealFlags};
use std::ffi::CStr;
use std::fs::File;
use std::sync::{Arc, RwLock};
use vm_memory::mmap::{MmapRegion, MmapRegionBuilder};
use vm_memory::{FileOffset, VolatileMemory, VolatileSlice};

/// A block of the host's memory, perhaps with a file that others can map.
pub type Block = Arc<MmapRegion>;

/// A new file in memory of `bytes` zero bytes, with no name in any file system.
pub fn memory_file(name: &CStr, bytes: u64) -> Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(memfd_create(name, flags).context("cannot make a file in memory")?);
    file.set_len(bytes).context("cannot reserve memory")?;
    // No process may shrink what the tender has mapped: the tender would be killed.
    let _ = fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL);
    Ok(file)
}

/// A block of memory, all zero, which costs nothing until it is touched; of a file, where others are to map it.
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
    Ok(Arc::new(region.build().with_context(|| format!("no {}M of memory", bytes >> 20))?))
}

/// A block of a file that somebody else made, perhaps only to read.
pub fn shared_block(bytes: u64, file: File, write: bool) -> Result<Block> {
    let prot = if write { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
    let region = MmapRegionBuilder::new(bytes as usize)
        .with_mmap_prot(prot)
        .with_file_offset(FileOffset::new(file, 0))
        .with_mmap_flags(libc::MAP_SHARED | libc::MAP_NORESERVE)
        .build();
    Ok(Arc::new(region.with_context(|| format!("no {}M for a region", bytes >> 20))?))
}

/// Bytes of page tables that the smallest guest needs.
const POPULATED_TABLES: u64 = 12 * 4096;

/// Makes pages there at once, which is cheaper than one by one when they are touched. It works without.
fn populate(block: &Block, offset: u64, bytes: u64) {
    if let Ok(slice) = block.get_slice(offset as usize, bytes as usize) {
        let at = slice.ptr_guard_mut().as_ptr().cast();
        // SAFETY: makes pages of this block's, whose content does not change.
        unsafe { libc::madvise(at, slice.len(), libc::MADV_POPULATE_WRITE) };
    }
}

/// Memory at an address of the guest's.
#[derive(Clone, Debug)]
struct Window {
    base: u64,
    bytes: u64,
    write: bool,
    block: Block,
    offset: u64,
}

/// What one guest can reach, as the tender sees it.
#[derive(Debug)]
pub struct Memory {
    /// The tender's pages, and behind them the guest's own memory.
    pub block: Block,
    /// Where what is not private lies: the block of the guest of this family that was there at the start.
    pub shared: Block,
    /// See [`Layout`].
    pub layout: Layout,
    /// That of the guest of this family that was there at the start.
    pub origin: Arc<Layout>,
    windows: RwLock<Vec<Window>>,
}

/// Not all of these bytes are the guest's, or not with this right.
#[derive(Debug, PartialEq, Eq)]
pub struct NotTheGuests;

impl Memory {
    /// Makes a guest's memory and puts the image there. With `files`, other processes can map it.
    pub fn new(image: &Image, file: &[u8], layout: Layout, files: bool) -> Result<Self> {
        let bytes = SYSTEM_BYTES + layout.bytes;
        let file_of = files.then(|| memory_file(c"kyozon-guest", bytes)).transpose()?;
        let block = block(bytes, file_of)?;
        // The heap and the stack are touched as the guest needs them, what the tender is about to write all at once.
        let image_bytes: u64 =
            layout.pieces[1..=image.segments.len()].iter().map(|p| p.bytes).sum();
        populate(&block, 0, system::USED);
        if !files {
            populate(&block, system::TABLES, POPULATED_TABLES);
        }
        populate(&block, layout.pieces[1].offset, image_bytes);
        let origin = Arc::new(layout.clone());
        let memory = Self::with(block.clone(), block, layout, origin);
        for segment in &image.segments {
            memory.load(segment.base, &file[segment.file.clone()])?;
        }
        memory.load_thread(image, file)?;
        Ok(memory)
    }

    /// The memory of a peer that is spawned, with the image's private data as they are in its file.
    pub fn spawned(&self, image: &Image, file: &[u8], layout: Layout) -> Result<Self> {
        let bytes = SYSTEM_BYTES + layout.bytes;
        let files = self.shared.file_offset().is_some();
        let file_of = files.then(|| memory_file(c"kyozon-peer", bytes)).transpose()?;
        let block = block(bytes, file_of)?;
        populate(&block, 0, system::USED);
        if !files {
            populate(&block, system::TABLES, POPULATED_TABLES);
        }
        let memory = Self::with(block, self.shared.clone(), layout, self.origin.clone());
        for segment in image.segments.iter().filter(|s| s.private) {
            memory.load(segment.base, &file[segment.file.clone()])?;
        }
        memory.load_thread(image, file)?;
        Ok(memory)
    }

    fn with(block: Block, shared: Block, layout: Layout, origin: Arc<Layout>) -> Self {
        let window = |piece: &Piece| Window {
            base: piece.base,
            bytes: piece.bytes,
            write: piece.write,
            block: if piece.private { block.clone() } else { shared.clone() },
            offset: piece.offset,
        };
        let windows = RwLock::new(layout.pieces.iter().map(window).collect());
        Self { block, shared, layout, origin, windows }
    }

    /// Whether it is of a peer that was spawned.
    pub fn is_spawned(&self) -> bool {
        !Arc::ptr_eq(&self.block, &self.shared)
    }

    /// The block in which a piece lies.
    pub fn block_of(&self, piece: &Piece) -> &Block {
        if piece.private {
            &self.block
        } else {
            &self.shared
        }
    }

    /// Thread-local data as they are in the file, and the word behind them.
    fn load_thread(&self, image: &Image, file: &[u8]) -> Result<()> {
        let thread = self.layout.thread;
        self.load(self.layout.tls_template(image), &file[image.tls.file.clone()])?;
        self.load(thread, &thread.to_le_bytes())
    }

    /// Writes before the start, also where the guest cannot.
    fn load(&self, address: u64, bytes: &[u8]) -> Result<()> {
        let inside = |p: &&Piece| address >= p.base && address - p.base < p.bytes;
        let piece = self
            .layout
            .pieces
            .iter()
            .find(inside)
            .present("no piece of the layout has this address")?;
        let offset = piece.offset + (address - piece.base);
        self.block_of(piece).get_slice(offset as usize, bytes.len())?.copy_from(bytes);
        Ok(())
    }

    /// Makes a region's block readable, and writable, at `base`.
    pub fn add(&self, base: u64, block: &Block, offset: u64, bytes: u64, write: bool) {
        let window = Window { base, bytes, write, block: block.clone(), offset };
        self.windows.write().unwrap_or_else(|e| e.into_inner()).push(window);
    }

    /// Takes away what [`Memory::add`] added in these bytes.
    pub fn remove(&self, base: u64, bytes: u64) {
        let mut windows = self.windows.write().unwrap_or_else(|e| e.into_inner());
        windows.retain(|w| w.base < base || w.base - base >= bytes);
    }

    /// Does something with each piece of `bytes` bytes at `address`, in order, or nothing at all.
    fn walk(
        &self,
        address: u64,
        bytes: u64,
        write: bool,
        mut with: impl FnMut(VolatileSlice<'_>),
    ) -> Result<(), NotTheGuests> {
        let end = address.checked_add(bytes).ok_or(NotTheGuests)?;
        let windows = self.windows.read().unwrap_or_else(|e| e.into_inner());
        let mut found = Vec::new();
        let mut at = address;
        while at < end {
            let here = |w: &&Window| w.base <= at && at - w.base < w.bytes && (w.write || !write);
            let window = windows.iter().find(here).ok_or(NotTheGuests)?;
            let count = (end - at).min(window.bytes - (at - window.base));
            let offset = window.offset + (at - window.base);
            found.push(
                window
                    .block
                    .get_slice(offset as usize, count as usize)
                    .map_err(|_| NotTheGuests)?,
            );
            at += count;
        }
        found.into_iter().for_each(&mut with);
        Ok(())
    }

    /// Copies from the guest.
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), NotTheGuests> {
        let mut done = 0;
        let bytes = to.len() as u64;
        self.walk(address, bytes, false, |slice| done += slice.copy_to(&mut to[done..]))
    }

    /// Copies to the guest, where it could write itself.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), NotTheGuests> {
        let mut done = 0;
        self.walk(address, from.len() as u64, true, |slice| {
            slice.copy_from(&from[done..done + slice.len()]);
            done += slice.len();
        })
    }

    /// The word at `address`.
    pub fn word(&self, address: u64) -> Result<u64, NotTheGuests> {
        let mut word = [0; 8];
        self.read(address, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    /// Gives pages of the heap back to the host. Both numbers are multiples of a page.
    pub fn discard(&self, address: u64, bytes: u64) -> Result<(), NotTheGuests> {
        let heap = self.layout.heap;
        let inside = address.checked_sub(heap.base).ok_or(NotTheGuests)?;
        if inside.checked_add(bytes).is_none_or(|end| end > heap.bytes) {
            return Err(NotTheGuests);
        }
        let advice = match self.shared.file_offset() {
            Some(_) => libc::MADV_REMOVE,
            None => libc::MADV_DONTNEED,
        };
        let offset = self.origin.pieces[0].offset + inside;
        let slice =
            self.shared.get_slice(offset as usize, bytes as usize).map_err(|_| NotTheGuests)?;
        // SAFETY: the pages are this block's, to which no reference exists; they stay mapped and become zero.
        unsafe { libc::madvise(slice.ptr_guard_mut().as_ptr().cast(), slice.len(), advice) };
        Ok(())
    }

    /// What can be read, for a core file: address, bytes, whether it can be written.
    pub fn readable(&self) -> Vec<(u64, u64, bool)> {
        let windows = self.windows.read().unwrap_or_else(|e| e.into_inner());
        windows.iter().map(|w| (w.base, w.bytes, w.write)).collect()
    }

    /// A structure's bytes at an offset of the tender's pages.
    pub fn put_system(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.block.get_slice(offset as usize, bytes.len())?.copy_from(bytes);
        Ok(())
    }

    /// Bytes at an offset of the tender's pages, copied once.
    pub fn get_system<const N: usize>(&self, offset: u64) -> [u8; N] {
        let mut bytes = [0; N];
        if let Ok(slice) = self.block.get_slice(offset as usize, N) {
            slice.copy_to(&mut bytes);
        }
        bytes
    }
}

/// The guest's address of an offset of the tender's pages.
pub fn system_address(offset: u64) -> u64 {
    GUEST_SYSTEM_BASE + offset
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf;
    use crate::layout::PAGE;
    use kyozon_abi::unikernel::*;

    fn memory(files: bool) -> Memory {
        let file = elf::tests::image();
        let image = elf::parse(&file).unwrap();
        let layout = Layout::new(&image, 1 << 20).unwrap();
        Memory::new(&image, &file, layout, files).unwrap()
    }

    #[test]
    fn only_what_is_the_guests_is_read_and_written() {
        let memory = memory(false);
        let text = GUEST_IMAGE_BASE;
        let mut buffer = [7; 0x2000];
        // From text into data, which lies behind it on the next page; text cannot be written.
        assert_eq!(memory.read(text, &mut buffer), Ok(()));
        assert!(buffer.iter().all(|b| *b == 0));
        assert_eq!(memory.write(text, &[1]), Err(NotTheGuests));
        assert_eq!(memory.write(text + 0xfff, &[1, 2]), Err(NotTheGuests));
        assert_eq!(memory.write(text + 0x1000, &[1, 2]), Ok(()));
        assert_eq!(memory.word(text + 0xfff), Ok(0x02_0100));
        let stack = memory.layout.stack;
        for outside in [0, stack.base - 1, GUEST_STACK_TOP - 7, GUEST_SYSTEM_BASE, u64::MAX - 3] {
            assert_eq!(memory.word(outside), Err(NotTheGuests), "{outside:#x}");
        }
        assert_eq!(memory.word(GUEST_STACK_TOP - 8), Ok(0));
        assert_eq!(memory.word(memory.layout.thread), Ok(memory.layout.thread));
        assert_eq!(memory.read(u64::MAX, &mut []), Ok(()));
    }

    #[test]
    fn regions_come_and_go() {
        let (memory, region) = (memory(false), block(2 * PAGE, None).unwrap());
        memory.add(REGION_BASE, &region, 0, PAGE, false);
        memory.add(REGION_BASE + PAGE, &region, PAGE, PAGE, true);
        assert_eq!(memory.write(REGION_BASE + PAGE, &[9]), Ok(()));
        assert_eq!(memory.write(REGION_BASE, &[9]), Err(NotTheGuests));
        memory.remove(REGION_BASE, 2 * PAGE);
        assert_eq!(memory.word(REGION_BASE + PAGE), Err(NotTheGuests));
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
                assert_eq!(memory.discard(address, bytes), Err(NotTheGuests));
            }
            assert_eq!(
                memory.discard(GUEST_HEAP_BASE, memory.layout.heap.bytes + PAGE),
                Err(NotTheGuests)
            );
        }
    }
}
