//! Storage of a block device's sectors.

use std::fs::File;
use std::io::{Error, ErrorKind, Result, Seek, SeekFrom};
use vm_memory::{ReadVolatile, VolatileSlice, WriteVolatile};

/// Bytes of a sector, the unit of addresses (section 5.2.4).
pub const SECTOR: u64 = 512;

/// A disk. Callers access only bytes that exist.
pub trait Disk: Send {
    /// Size in bytes, a multiple of [`SECTOR`].
    fn bytes(&self) -> u64;
    /// Fills a piece of the guest's memory from the disk's byte `at` on.
    fn read(&mut self, at: u64, to: &mut VolatileSlice<'_>) -> Result<()>;
    /// Writes a piece of the guest's memory to the disk from byte `at` on.
    fn write(&mut self, at: u64, from: &VolatileSlice<'_>) -> Result<()>;
    /// Returns when all earlier writes survive a loss of power, as far as the host can ensure it.
    fn flush(&mut self) -> Result<()>;
}

/// A disk in a file. If another process shortens the file, access to the missing sectors fails.
#[derive(Debug)]
pub struct FileDisk {
    file: File,
    bytes: u64,
}

impl FileDisk {
    /// A disk of all complete sectors in a file or block device.
    ///
    /// # Errors
    /// An I/O error, or one of kind `InvalidInput` if there is no complete sector.
    pub fn new(mut file: File) -> Result<Self> {
        let bytes = file.seek(SeekFrom::End(0))? / SECTOR * SECTOR;
        if bytes == 0 {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "it is shorter than one sector of 512 bytes",
            ));
        }
        Ok(Self { file, bytes })
    }
}

fn io(error: vm_memory::VolatileMemoryError) -> Error {
    match error {
        vm_memory::VolatileMemoryError::IOError(error) => error,
        other => Error::other(other),
    }
}

impl Disk for FileDisk {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&mut self, at: u64, to: &mut VolatileSlice<'_>) -> Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.read_exact_volatile(to).map_err(io)
    }

    fn write(&mut self, at: u64, from: &VolatileSlice<'_>) -> Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all_volatile(from).map_err(io)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.sync_data()
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

    fn read(&mut self, at: u64, to: &mut VolatileSlice<'_>) -> Result<()> {
        to.copy_from(self.piece(at, to.len())?);
        Ok(())
    }

    fn write(&mut self, at: u64, from: &VolatileSlice<'_>) -> Result<()> {
        from.copy_to(self.piece(at, from.len())?);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
