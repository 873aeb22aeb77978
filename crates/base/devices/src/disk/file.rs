//! A disk in a file or on a block device.

use super::{busy, vectored, Disk, Limits, SECTOR};
use rustix::fs::{fallocate, flock, FallocateFlags, FlockOperation};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Result, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A disk in a file. If another process shortens the file, access to the missing sectors fails.
#[derive(Debug)]
pub struct FileDisk {
    file: File,
    bytes: u64,
    limits: Limits,
    /// Whether the file system is not known to lack `FALLOC_FL_ZERO_RANGE`.
    zero_range: bool,
}

/// For how long a lock is waited for. A process that another thread starts has it too, until it runs its program: it
/// can be held for a moment after the disk that it was taken for.
const PATIENCE: Duration = Duration::from_millis(500);

/// Locks a file.
fn locked(file: &File, how: FlockOperation) -> bool {
    let end = Instant::now() + PATIENCE;
    loop {
        match flock(file, how) {
            Ok(()) => return true,
            Err(Errno::AGAIN | Errno::INTR) if Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(_) => return false,
        }
    }
}

/// Bytes that one write of zeros has.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

impl FileDisk {
    /// A disk of all complete sectors in a file or block device. It takes no discards.
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
        Ok(Self { file, bytes, limits: Limits::default(), zero_range: true })
    }

    /// A disk whose properties are known: the file of another [`FileDisk`], which another process opened.
    ///
    /// # Errors
    /// As [`FileDisk::new`].
    pub fn with_limits(file: File, limits: Limits) -> Result<Self> {
        Ok(Self { limits, ..Self::new(file)? })
    }

    /// Opens and locks a file or block device, for writing if `write`. Takes discards if the file system has holes.
    ///
    /// # Errors
    /// An I/O error; one of kind `InvalidInput` if it is no file, or has no complete sector; one of kind
    /// `ResourceBusy` if another disk uses it and one of both can write, or if the host has mounted what is to be
    /// written.
    pub fn open(path: &Path, write: bool) -> Result<Self> {
        // The kind is checked before the file is opened, because opening a pipe waits for its other end.
        let metadata = std::fs::metadata(path)?;
        let kind = metadata.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            let text = "it is neither a file nor a block device: give the path of a disk image";
            return Err(Error::new(ErrorKind::InvalidInput, text));
        }
        if let (true, Some(device)) = (write && kind.is_file(), loop_device(&metadata)) {
            return Err(busy(&format!(
                "the host has it as {}: detach that first",
                device.display()
            )));
        }
        // Linux gives a block device exclusively only if it is not mounted, nor part of another device.
        let how = if write && kind.is_block_device() { libc::O_EXCL } else { 0 };
        let file = File::options().read(true).write(write).custom_flags(how).open(path);
        let file = file.map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => {
                busy("the host has mounted it, or uses it otherwise: unmount it first")
            }
            _ => error,
        })?;
        let lock = if write {
            FlockOperation::NonBlockingLockExclusive
        } else {
            FlockOperation::NonBlockingLockShared
        };
        if !locked(&file, lock) {
            return Err(busy(
                "it is in use as another disk: only read-only disks can share a file",
            ));
        }
        let mut disk = Self::new(file)?;
        disk.limits = if kind.is_block_device() {
            disk.device_limits(write)
        } else {
            let block = disk.file.metadata()?.blksize().clamp(SECTOR, 1 << 16) as u32;
            let physical = block.checked_next_power_of_two().unwrap_or(4096);
            Limits { block: SECTOR as u32, physical, holes: write && disk.has_holes() }
        };
        Ok(disk)
    }

    /// Whether the host has mounted the disk, or uses it otherwise, at this moment. What is read from it then may be
    /// old or inconsistent.
    #[must_use]
    pub fn is_busy(path: &Path) -> bool {
        let Ok(metadata) = std::fs::metadata(path) else { return false };
        if metadata.file_type().is_block_device() {
            let exclusive = File::options().read(true).custom_flags(libc::O_EXCL).open(path);
            return exclusive.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY));
        }
        loop_device(&metadata).is_some()
    }

    /// Whether the file system has `FALLOC_FL_PUNCH_HOLE`: asks for a hole behind the end of the file, which changes
    /// nothing.
    fn has_holes(&self) -> bool {
        let end = self.file.metadata().map_or(self.bytes, |metadata| metadata.len());
        let end = end.next_multiple_of(4096);
        fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, end, 4096)
            .is_ok()
    }

    /// Gives the disk blocks of another size.
    #[cfg(feature = "qcow2")]
    pub(super) fn set_block(&mut self, block: u32) {
        self.limits.block = block;
        self.limits.physical = self.limits.physical.max(block);
    }

    /// The file, still locked.
    #[cfg(feature = "qcow2")]
    pub(super) fn into_file(self) -> File {
        self.file
    }

    fn device_limits(&self, write: bool) -> Limits {
        let size = |request| {
            let mut bytes: libc::c_uint = 0;
            // SAFETY: both requests write an unsigned int.
            let done = unsafe { libc::ioctl(self.file.as_raw_fd(), request, &raw mut bytes) };
            let valid = done == 0 && bytes.is_power_of_two() && u64::from(bytes) >= SECTOR;
            if valid {
                bytes
            } else {
                SECTOR as u32
            }
        };
        let block = size(libc::BLKSSZGET);
        // Devices without discards answer with an error, which the guest's driver understands.
        Limits { block, physical: size(libc::BLKPBSZGET).max(block), holes: write }
    }

    fn punch(&self, at: u64, bytes: u64) -> Result<()> {
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.file, mode, at, bytes).map_err(explained)
    }

    fn fill(&self, mut at: u64, mut bytes: u64) -> Result<()> {
        while bytes > 0 {
            let count = bytes.min(ZEROS.len() as u64);
            self.file.write_all_at(&ZEROS[..count as usize], at)?;
            (at, bytes) = (at + count, bytes - count);
        }
        Ok(())
    }
}

impl AsFd for FileDisk {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn loop_device(metadata: &Metadata) -> Option<PathBuf> {
    busy::loop_device(Path::new(busy::DEVICES), metadata)
}

fn busy(text: &str) -> Error {
    Error::new(ErrorKind::ResourceBusy, text)
}

fn explained(errno: Errno) -> Error {
    if errno != Errno::OPNOTSUPP {
        return errno.into();
    }
    let text = "the file system of the disk's file has no holes (FALLOC_FL_PUNCH_HOLE): \
                move the file to ext4, xfs, btrfs or tmpfs, or mount without discards";
    Error::new(ErrorKind::Unsupported, text)
}

impl Disk for FileDisk {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&mut self, at: u64, to: &[vm_memory::VolatileSlice<'_>]) -> Result<()> {
        vectored::read(self.file.as_fd(), at, to)
    }

    fn write(&mut self, at: u64, from: &[vm_memory::VolatileSlice<'_>]) -> Result<()> {
        vectored::write(self.file.as_fd(), at, from)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.sync_data()
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn discard(&mut self, at: u64, bytes: u64) -> Result<()> {
        self.punch(at, bytes)
    }

    fn write_zeros(&mut self, at: u64, bytes: u64, unmap: bool) -> Result<()> {
        if unmap && self.limits.holes && self.punch(at, bytes).is_ok() {
            return Ok(());
        }
        if self.zero_range {
            let mode = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
            match fallocate(&self.file, mode, at, bytes) {
                // tmpfs, for one, has holes but no zeroed ranges.
                Err(Errno::OPNOTSUPP) => self.zero_range = false,
                done => return done.map_err(Error::from),
            }
        }
        self.fill(at, bytes)
    }
}
