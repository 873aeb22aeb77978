//! The physical memory in a file: an ELF core (`/proc/vmcore`, QEMU's `dump-guest-memory`), an image made with LiME, or
//! plain memory from address 0 on (QEMU's `pmemsave`).
//!
//! The file is untrusted: any content gives memory or an error. Pages are read when they are first used, and kept until
//! [`Dump::look_again`]. Of a running machine, only the blocks are read that are used: the kernel copies each byte of
//! its memory slowly, and most structures are small.

use anyhow::{anyhow, bail, ensure, Context, Result};
use kyozon_monitor::memory::{KernelMemory, Page, PAGE_BYTES, PAGE_WORDS};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::ops;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Pages that are reserved together.
const CHUNK: u64 = 512;
/// Maximum ranges, bytes of notes, and bytes of memory.
const MAX_RANGES: usize = 4096;
const MAX_NOTES: u64 = 16 << 20;
const MAX_MEMORY: u64 = 1 << 46;
/// Maximum number of pages that are counted as lacking.
const MAX_LACKING: usize = 4096;

const ELF_MAGIC: &[u8] = b"\x7fELF";
/// A 64-bit file, little-endian.
const ELF_CLASS: [u8; 2] = [2, 1];
const ELF_CORE: u16 = 4;
const ELF_X86_64: u16 = 62;
const ELF_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const LOAD: u32 = 1;
const NOTE: u32 = 4;
/// Reads of a running machine's memory after which pages are read again: a list is walked node by node, and Linux may
/// change it between two nodes.
const LOOK_READS: u32 = 128;
/// The physical address of a range that is known by virtual addresses only (`/proc/kcore`).
const NOT_PHYSICAL: u64 = u64::MAX;
/// The beginning of a range in an image made with LiME: magic number, version 1, first and last address, reserved.
const LIME_MAGIC: u32 = 0x4c69_4d45;
const LIME_HEADER: usize = 32;

/// Words of a block, and blocks of a page.
const BLOCK_WORDS: usize = 32;
const BLOCKS: usize = PAGE_WORDS / BLOCK_WORDS;

/// Where a page is kept.
#[derive(Debug, Default)]
struct Slot {
    /// The page, once it was read; `None` if it could not be.
    page: OnceCell<Option<Box<Page>>>,
    /// The look at which its blocks were last read, and those that were: a bit for each.
    look: Cell<u32>,
    fresh: Cell<u16>,
}

/// A contiguous range of physical memory.
#[derive(Debug)]
struct Range {
    physical: u64,
    bytes: u64,
    /// Its place in the file.
    offset: u64,
    chunks: Vec<OnceCell<Box<[Slot]>>>,
}

/// The physical memory in a file.
#[derive(Debug)]
pub struct Dump {
    file: File,
    /// The file's format, for people.
    pub format: &'static str,
    /// Bytes of the file.
    bytes: u64,
    ranges: Vec<Range>,
    /// The notes of an ELF core.
    pub notes: Vec<u8>,
    /// The pages, by physical or virtual address, that were to be read and are not in the file.
    lacking: RefCell<BTreeSet<u64>>,
    /// The number of this look at the file, and of its reads if the memory changes.
    look: Cell<u32>,
    reads: Cell<u32>,
    changes: bool,
}

impl Dump {
    /// Opens the image at `path`.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has none of the formats.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = || path.display().to_string();
        // A pipe that nobody writes to would be waited for.
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let file = File::options().read(true).custom_flags(flags).open(path).with_context(shown)?;
        Self::read(file).with_context(shown)
    }

    /// The memory of a running machine, as a file that changes.
    ///
    /// # Errors
    ///
    /// Those of [`Self::open`].
    pub fn open_live(path: &Path) -> Result<Self> {
        Ok(Self { changes: true, ..Self::open(path)? })
    }

    fn read(mut file: File) -> Result<Self> {
        // A file of /proc does not know its size before it is asked for its end.
        let bytes = file.seek(SeekFrom::End(0)).context("it has no end")?;
        let mut head = [0; ELF_HEADER];
        let shown = head.len().min(bytes as usize);
        file.read_exact_at(&mut head[..shown], 0).context("read its beginning")?;
        let mut dump = Self {
            file,
            format: "",
            bytes,
            ranges: Vec::new(),
            notes: Vec::new(),
            lacking: RefCell::default(),
            look: Cell::default(),
            reads: Cell::default(),
            changes: false,
        };
        match &head {
            head if head.starts_with(ELF_MAGIC) => dump.read_elf(head)?,
            head if word(head, 0) == Some(LIME_MAGIC) => dump.read_lime(bytes)?,
            head if head.starts_with(b"KDUMP   ") || head.starts_with(b"makedumpfile") => {
                bail!("it is compressed: write an ELF core instead, with makedumpfile -E, or copy /proc/vmcore")
            }
            _ => {
                ensure!(
                    bytes > 0 && bytes.is_multiple_of(PAGE_BYTES),
                    "no memory image: neither an ELF core nor a LiME image, and no plain memory, since its {bytes} \
                     bytes are not whole pages"
                );
                dump.format = "plain memory";
                dump.add(0, bytes, 0)?;
            }
        }
        dump.drop_contained();
        ensure!(!dump.ranges.is_empty(), "it contains no page of memory");
        Ok(dump)
    }

    fn read_elf(&mut self, header: &[u8; ELF_HEADER]) -> Result<()> {
        self.format = "ELF core";
        let is_core = header[4..6] == ELF_CLASS
            && half(header, 16) == Some(ELF_CORE)
            && half(header, 18) == Some(ELF_X86_64);
        ensure!(is_core, "an ELF file, but no core of a 64-bit x86 machine");
        let (start, count) = (long(header, 32), half(header, 56).map(usize::from));
        let (start, count) = start.zip(count).context("an ELF file without headers")?;
        ensure!(
            half(header, 54).map(usize::from) == Some(PROGRAM_HEADER),
            "an ELF file with headers of another size"
        );
        ensure!(count <= MAX_RANGES, "it has {count} ranges: at most {MAX_RANGES} are read");
        let mut headers = vec![0; count * PROGRAM_HEADER];
        self.file.read_exact_at(&mut headers, start).context("read its headers")?;
        for header in headers.chunks_exact(PROGRAM_HEADER) {
            let fields = [8, 24, 32].map(|at| long(header, at).unwrap_or_default());
            let [offset, physical, bytes] = fields;
            match word(header, 0) {
                Some(LOAD) if physical == NOT_PHYSICAL => {}
                Some(LOAD) => self.add(physical, bytes, offset)?,
                Some(NOTE) if self.notes.is_empty() => {
                    ensure!(
                        bytes <= MAX_NOTES,
                        "its notes have {bytes} bytes: at most {MAX_NOTES} are read"
                    );
                    self.notes = vec![0; bytes as usize];
                    self.file.read_exact_at(&mut self.notes, offset).context("read its notes")?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn read_lime(&mut self, bytes: u64) -> Result<()> {
        self.format = "LiME image";
        let mut offset = 0;
        while offset < bytes {
            let mut header = [0; LIME_HEADER];
            self.file.read_exact_at(&mut header, offset).context("read the header of a range")?;
            let range = (long(&header, 8), long(&header, 16).and_then(|last| last.checked_add(1)));
            let (Some(first), Some(end)) = range else { bail!("a range has no end") };
            ensure!(
                word(&header, 0) == Some(LIME_MAGIC) && first < end,
                "there is no range at byte {offset}"
            );
            offset += LIME_HEADER as u64;
            self.add(first, end - first, offset)?;
            offset = offset.checked_add(end - first).context("a range is too long")?;
        }
        Ok(())
    }

    /// Adds the whole pages of a range.
    fn add(&mut self, physical: u64, bytes: u64, offset: u64) -> Result<()> {
        let wrong = || anyhow!("a range of {bytes:#x} bytes at {physical:#x} is impossible");
        let end = physical.checked_add(bytes).filter(|end| *end <= MAX_MEMORY).ok_or_else(wrong)?;
        let behind = offset.checked_add(bytes).ok_or_else(wrong)?;
        ensure!(
            behind <= self.bytes,
            "it is truncated: the memory at {physical:#x} ends at byte {behind} of {}",
            self.bytes
        );
        // /proc/vmcore has the kernel's image twice.
        let all = self.extent().1.saturating_add(bytes);
        ensure!(all <= self.bytes.saturating_mul(2), "its ranges overlap");
        ensure!(self.ranges.len() < MAX_RANGES, "it has more than {MAX_RANGES} ranges");
        let first = physical.next_multiple_of(PAGE_BYTES);
        let whole = end.saturating_sub(first) / PAGE_BYTES * PAGE_BYTES;
        if whole > 0 {
            let chunks = (whole / PAGE_BYTES).div_ceil(CHUNK);
            self.ranges.push(Range {
                physical: first,
                bytes: whole,
                offset: offset + (first - physical),
                chunks: (0..chunks).map(|_| OnceCell::new()).collect(),
            });
        }
        Ok(())
    }

    /// Drops ranges that others contain.
    fn drop_contained(&mut self) {
        let all: Vec<(u64, u64)> = self
            .ranges
            .iter()
            .map(|range| (range.physical, range.physical + range.bytes))
            .collect();
        let is_contained = |at: usize| {
            let (start, end) = all[at];
            all.iter().enumerate().any(|(other, (from, to))| {
                let covers = *from <= start && end <= *to;
                covers && ((*from, *to) != (start, end) || other < at)
            })
        };
        let mut at = 0..;
        self.ranges.retain(|_| !at.next().is_some_and(is_contained));
    }

    /// Has each page read again when it is next used: the memory of a running machine changes. Those who hold a page
    /// see the changes, too.
    pub fn look_again(&self) {
        self.look.set(self.look.get().wrapping_add(1));
    }

    /// The pages, by physical or virtual address, that were to be read and are not in the file, since the last call.
    pub fn take_lacking(&self) -> BTreeSet<u64> {
        self.lacking.take()
    }

    /// Number of ranges of memory, and bytes in them.
    pub fn extent(&self) -> (usize, u64) {
        (self.ranges.len(), self.ranges.iter().map(|range| range.bytes).sum())
    }

    /// The addresses of all pages.
    pub fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        self.ranges.iter().flat_map(|range| {
            (range.physical..range.physical + range.bytes).step_by(PAGE_BYTES as usize)
        })
    }

    /// The first bytes of the page at `physical`, which is not kept.
    pub fn peek<const N: usize>(&self, physical: u64) -> Option<[u8; N]> {
        let range = self.range(physical)?;
        let mut bytes = [0; N];
        self.file.read_exact_at(&mut bytes, range.offset + (physical - range.physical)).ok()?;
        Some(bytes)
    }

    fn range(&self, physical: u64) -> Option<&Range> {
        let holds = |range: &&Range| {
            physical.checked_sub(range.physical).is_some_and(|offset| offset < range.bytes)
        };
        self.ranges.iter().find(holds)
    }
}

impl KernelMemory for Dump {
    fn lacks(&self, address: u64) {
        let mut lacking = self.lacking.borrow_mut();
        if lacking.len() < MAX_LACKING {
            lacking.insert(address / PAGE_BYTES);
        }
    }

    fn page(&self, physical: u64) -> Option<&Page> {
        self.part(physical, 0..PAGE_WORDS)
    }

    fn part(&self, physical: u64, words: ops::Range<usize>) -> Option<&Page> {
        let page = self.find(physical, &words);
        if page.is_none() {
            self.lacks(physical);
        }
        page
    }
}

impl Dump {
    /// The page at `physical`, of which `words` are those of this look.
    fn find(&self, physical: u64, words: &ops::Range<usize>) -> Option<&Page> {
        if self.changes {
            self.reads.set((self.reads.get() + 1) % LOOK_READS);
            if self.reads.get() == 0 {
                self.look_again();
            }
        }
        let range = self.range(physical)?;
        let number = (physical - range.physical) / PAGE_BYTES;
        let slots = range.chunks.get((number / CHUNK) as usize)?;
        let slots = slots.get_or_init(|| (0..CHUNK).map(|_| Slot::default()).collect());
        let slot = slots.get((number % CHUNK) as usize)?;
        if slot.look.replace(self.look.get()) != self.look.get() {
            slot.fresh.set(0);
        }
        let wanted = match self.changes {
            true => words.start / BLOCK_WORDS..words.end.div_ceil(BLOCK_WORDS),
            false => 0..BLOCKS,
        };
        let bits = ((1u32 << wanted.end) - (1 << wanted.start)) as u16;
        let offset = range.offset + number * PAGE_BYTES;
        let is_fresh = slot.fresh.get() & bits == bits;
        let read =
            |page: &Page| is_fresh.then_some(()).or_else(|| self.fill(page, offset, &wanted));
        let first = || {
            let page = Box::new(std::array::from_fn(|_| AtomicU64::new(0)));
            read(&page)?;
            Some(page)
        };
        let page = match slot.page.get() {
            Some(page) => {
                let page = page.as_deref()?;
                read(page)?;
                page
            }
            None => slot.page.get_or_init(first).as_deref()?,
        };
        slot.fresh.set(slot.fresh.get() | bits);
        Some(page)
    }

    /// Reads `blocks` of the page at `offset` in the file.
    fn fill(&self, page: &Page, offset: u64, blocks: &ops::Range<usize>) -> Option<()> {
        let words = page.get(blocks.start * BLOCK_WORDS..blocks.end * BLOCK_WORDS)?;
        let mut bytes = [0; PAGE_BYTES as usize];
        let bytes = bytes.get_mut(..8 * words.len())?;
        let at = offset + (8 * blocks.start * BLOCK_WORDS) as u64;
        self.file.read_exact_at(bytes, at).ok()?;
        for (into, bytes) in words.iter().zip(bytes.chunks_exact(8)) {
            into.store(long(bytes, 0).unwrap_or_default(), Relaxed);
        }
        Some(())
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|part| u16::from_le_bytes(*part))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|part| u32::from_le_bytes(*part))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|part| u64::from_le_bytes(*part))
}
