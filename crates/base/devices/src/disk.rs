//! Storage of a block device's sectors.

mod busy;
mod file;
#[cfg(feature = "qcow2")]
mod foreign;
#[cfg(feature = "qcow2")]
mod image;
#[cfg(feature = "qcow2")]
mod qcow2;
mod vectored;

pub use file::FileDisk;
#[cfg(feature = "qcow2")]
pub use image::{Image, Opened};
#[cfg(feature = "qcow2")]
pub use qcow2::Qcow2Disk;

use std::io::{Error, ErrorKind, Result};
use vm_memory::VolatileSlice;

/// Bytes of a sector, the unit of addresses (section 5.2.4).
pub const SECTOR: u64 = 512;

/// Properties of a disk that its guest learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a block: reads and writes of less cost more. A power of two, at least [`SECTOR`].
    pub block: u32,
    /// Bytes of a block of the medium: a power of two, at least `block`.
    pub physical: u32,
    /// Whether the disk takes discards and writes of zeros.
    pub holes: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { block: SECTOR as u32, physical: 4096, holes: false }
    }
}

/// A disk. Callers access only bytes that exist.
pub trait Disk: Send {
    /// Size in bytes, a multiple of [`SECTOR`].
    fn bytes(&self) -> u64;
    /// Fills pieces of the guest's memory from the disk's byte `at` on.
    fn read(&mut self, at: u64, to: &[VolatileSlice<'_>]) -> Result<()>;
    /// Writes pieces of the guest's memory to the disk from byte `at` on.
    fn write(&mut self, at: u64, from: &[VolatileSlice<'_>]) -> Result<()>;
    /// Returns when all earlier writes survive a loss of power, as far as the host can ensure it.
    fn flush(&mut self) -> Result<()>;

    /// Its properties.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// Frees the storage of `bytes` bytes from byte `at` on. Their contents are zeros afterwards.
    fn discard(&mut self, at: u64, bytes: u64) -> Result<()> {
        let _ = (at, bytes);
        Err(ErrorKind::Unsupported.into())
    }

    /// Fills `bytes` bytes from byte `at` on with zeros. With `unmap` it may free their storage.
    fn write_zeros(&mut self, at: u64, bytes: u64, unmap: bool) -> Result<()> {
        let _ = (at, bytes, unmap);
        Err(ErrorKind::Unsupported.into())
    }
}

/// A disk in memory. Dropping it loses the contents.
#[derive(Clone, Debug)]
pub struct MemoryDisk(Vec<u8>);

impl MemoryDisk {
    /// A disk of all complete sectors in `content`.
    pub fn new(mut content: Vec<u8>) -> Self {
        content.truncate(content.len() / SECTOR as usize * SECTOR as usize);
        Self(content)
    }

    /// Its contents.
    pub fn content(&self) -> &[u8] {
        &self.0
    }

    fn piece(&mut self, at: u64, bytes: usize) -> Result<&mut [u8]> {
        let at = usize::try_from(at).map_err(Error::other)?;
        let end = at.checked_add(bytes).ok_or(ErrorKind::UnexpectedEof)?;
        self.0.get_mut(at..end).ok_or(ErrorKind::UnexpectedEof.into())
    }
}

impl Disk for MemoryDisk {
    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&mut self, mut at: u64, to: &[VolatileSlice<'_>]) -> Result<()> {
        for slice in to {
            slice.copy_from(self.piece(at, slice.len())?);
            at += slice.len() as u64;
        }
        Ok(())
    }

    fn write(&mut self, mut at: u64, from: &[VolatileSlice<'_>]) -> Result<()> {
        for slice in from {
            slice.copy_to(self.piece(at, slice.len())?);
            at += slice.len() as u64;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn limits(&self) -> Limits {
        Limits { holes: true, ..Limits::default() }
    }

    fn discard(&mut self, at: u64, bytes: u64) -> Result<()> {
        self.write_zeros(at, bytes, true)
    }

    fn write_zeros(&mut self, at: u64, bytes: u64, _: bool) -> Result<()> {
        let bytes = usize::try_from(bytes).map_err(Error::other)?;
        self.piece(at, bytes)?.fill(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
