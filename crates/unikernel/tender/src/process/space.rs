//! The address space of a guest that runs in a process.

use super::child::{self, Piece};
use super::cpu::ProcessCpu;
use crate::backend::{Mapping, Space};
use crate::error::{Context, Present, Result};
use crate::layout::{system, PAGE};
use crate::memory::{Block, Memory};
use kyozon_abi::unikernel::*;
use std::arch::is_x86_feature_detected;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, Mutex, OnceLock};
use vmm_sys_util::eventfd::EventFd;

/// The address space of a guest. Regions can be added until its process starts.
pub struct ProcessSpace {
    lifeline: OnceLock<OwnedFd>,
    /// The regions to map, each with a read-only descriptor.
    regions: Mutex<Vec<(Mapping, Arc<File>)>>,
    readers: Readers,
}

/// Read-only descriptors of regions, by region number. The tender opens them before it gives up files; peers that are
/// spawned later use them as well.
pub type Readers = Arc<Mutex<Vec<(usize, Arc<File>)>>>;

fn file(block: &Block) -> Result<BorrowedFd<'_>> {
    Ok(block.file_offset().present("the memory has no file")?.file().as_fd())
}

/// Opens the same file read-only.
///
/// # Errors
///
/// `/proc` is not mounted, or Linux refuses another descriptor.
pub(crate) fn read_only(file: BorrowedFd<'_>) -> Result<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_CLOEXEC);
    options.open(path).context("cannot open a region read-only (is /proc mounted?)")
}

impl ProcessSpace {
    /// An empty address space. It shares `readers` with the other guests of its run.
    pub fn new(readers: &Readers) -> Arc<Self> {
        let (lifeline, regions) = (OnceLock::new(), Mutex::default());
        Arc::new(Self { lifeline, regions, readers: readers.clone() })
    }

    /// The read-only descriptor of a region.
    fn reader(&self, mapping: &Mapping) -> Result<Arc<File>> {
        let mut readers = self.readers.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((_, reader)) = readers.iter().find(|(number, _)| *number == mapping.number) {
            return Ok(reader.clone());
        }
        let reader = Arc::new(read_only(file(&mapping.block)?)?);
        readers.push((mapping.number, reader.clone()));
        Ok(reader)
    }

    /// Starts the process, which waits until a thread traces it. `doorbells` are those of peers, `queues` those of
    /// queues.
    ///
    /// # Errors
    ///
    /// Linux refuses the process, or the memory has no file.
    pub fn start(
        &self,
        memory: &Memory,
        doorbells: &[&EventFd],
        queues: &[&EventFd],
    ) -> Result<ProcessCpu> {
        let regions = self.regions.lock().unwrap_or_else(|e| e.into_inner());
        let read = libc::PROT_READ;
        let write = read | libc::PROT_WRITE;
        let own = file(&memory.block)?;
        let at = |offset| GUEST_SYSTEM_BASE + offset;
        let mut pieces = Vec::new();
        for (offset, bytes, prot) in [
            (system::BOOT, PAGE, read),
            (system::CALL, PAGE, write),
            (system::ARGUMENTS, system::ARGUMENTS_BYTES, read),
        ] {
            pieces.push(Piece { base: at(offset), bytes, offset, prot, file: own });
        }
        if let Some(lives) = memory.lives() {
            let (base, file) = (at(system::PEERS), lives.as_fd());
            pieces.push(Piece { base, bytes: PAGE, offset: 0, prot: read, file });
        }
        for piece in &memory.layout.pieces {
            let prot = match (piece.write, piece.execute) {
                (true, _) => write,
                (_, true) => read | libc::PROT_EXEC,
                _ => read,
            };
            let (base, bytes, offset) = (piece.base, piece.bytes, piece.offset);
            let file = file(memory.block_of(piece))?;
            pieces.push(Piece { base, bytes, offset, prot, file });
        }
        for (region, reader) in regions.iter() {
            let Mapping { address, bytes, .. } = *region;
            let header = reader.as_fd();
            let data = if region.write { file(&region.block)? } else { header };
            let prot = if region.write { write } else { read };
            pieces.push(Piece { base: address, bytes: PAGE, offset: 0, prot: read, file: header });
            let (base, bytes) = (address + PAGE, bytes - PAGE);
            pieces.push(Piece { base, bytes, offset: PAGE, prot, file: data });
        }
        let lifeline = self.lifeline.get().map(AsFd::as_fd);
        child::start(memory, &pieces, (doorbells, queues), lifeline)
    }
}

impl Space for ProcessSpace {
    fn features(&self) -> u64 {
        let bit = |on: bool, bit| if on { bit } else { 0 };
        // HWCAP2_FSGSBASE: the kernel allows these instructions.
        // SAFETY: the call only returns a number.
        let fsgsbase = unsafe { libc::getauxval(libc::AT_HWCAP2) } & 2 != 0;
        bit(is_x86_feature_detected!("avx2"), FEATURE_AVX2) | bit(fsgsbase, FEATURE_FSGSBASE)
    }

    fn set_lifeline(&self, lifeline: BorrowedFd<'_>) -> Result<()> {
        let _ = self.lifeline.set(lifeline.try_clone_to_owned().context("too many open files")?);
        Ok(())
    }

    fn map(&self, mapping: &Mapping) -> Result<()> {
        let reader = self.reader(mapping)?;
        self.regions.lock().unwrap_or_else(|e| e.into_inner()).push((mapping.clone(), reader));
        Ok(())
    }

    fn unmap(&self, _: &Mapping) -> Result<bool> {
        Ok(false)
    }
}
