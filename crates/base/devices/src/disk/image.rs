//! A file with the contents of a disk: raw, or in the format qcow2.

use super::foreign;
use super::qcow2::{Header, Qcow2Disk};
use super::{Disk, FileDisk, Limits};
use std::fs::File;
use std::io::Result;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// An image. A file that begins with the magic number of qcow2 is one; formats that are known otherwise are refused,
/// and anything else is raw.
#[derive(Debug)]
pub struct Image {
    file: FileDisk,
    qcow2: Option<Header>,
}

/// A disk on an image.
pub struct Opened {
    /// The disk.
    pub disk: Box<dyn Disk>,
    /// The same disk if it is qcow2. Who ends without dropping `disk` must write it back.
    pub qcow2: Option<Qcow2Disk>,
}

impl Image {
    /// Opens and locks an image as [`FileDisk::open`] does.
    ///
    /// # Errors
    /// Those of [`FileDisk::open`]; one of kind `InvalidData` or `Unsupported` if it is qcow2 that cannot be used
    /// or has another format.
    pub fn open(path: &Path, write: bool) -> Result<Self> {
        let mut file = FileDisk::open(path, write)?;
        // The file must be able to grow, which a device does not.
        let mut qcow2 = None;
        if std::fs::metadata(path)?.is_file() {
            foreign::refuse(file.as_fd())?;
            qcow2 = Header::read(file.as_fd(), file.bytes(), write)?;
            if let (None, Some(block)) = (qcow2, block_of_partitions(file.as_fd())) {
                file.set_block(block);
            }
        }
        Ok(Self { file, qcow2 })
    }

    /// The file of an image that another process opened, and its properties there.
    ///
    /// # Errors
    /// As [`Image::open`].
    pub fn inherited(file: File, write: bool, limits: Limits, qcow2: bool) -> Result<Self> {
        let file = FileDisk::with_limits(file, limits)?;
        let qcow2 = if qcow2 { Header::read(file.as_fd(), file.bytes(), write)? } else { None };
        Ok(Self { file, qcow2 })
    }

    /// Whether it is qcow2.
    #[must_use]
    pub fn is_qcow2(&self) -> bool {
        self.qcow2.is_some()
    }

    /// The properties of the file.
    #[must_use]
    pub fn file_limits(&self) -> Limits {
        self.file.limits()
    }

    /// Maximum bytes of the file after any writes to the disk.
    #[must_use]
    pub fn largest(&self) -> u64 {
        let bytes = self.file.bytes();
        self.qcow2.map_or(bytes, |header| header.largest(bytes))
    }

    /// The disk. A qcow2 image gets a thread, which needs no files from here on; it reads the image at the first access
    /// or [`Qcow2Disk::check`].
    ///
    /// # Errors
    /// There can be no further thread.
    pub fn disk(self, write: bool) -> Result<Opened> {
        let Some(header) = self.qcow2 else {
            return Ok(Opened { disk: Box::new(self.file), qcow2: None });
        };
        let end = self.file.bytes();
        let disk = Qcow2Disk::new(self.file.into_file(), end, header, write)?;
        Ok(Opened { disk: Box::new(disk.clone()), qcow2: Some(disk) })
    }
}

/// Bytes of a block of the disk that a raw image is of, if it has a partition table that tells it: GPT's header is in
/// the second block (UEFI 2.10, section 5.3.2).
fn block_of_partitions(file: BorrowedFd<'_>) -> Option<u32> {
    let has_header = |block: u32| {
        let mut signature = [0; 8];
        let read = rustix::io::pread(file, &mut signature, block.into());
        read == Ok(signature.len()) && &signature == b"EFI PART"
    };
    let end = rustix::fs::fstat(file).ok()?.st_size;
    let large = !has_header(512) && has_header(4096) && end % 4096 == 0;
    large.then_some(4096)
}

impl From<FileDisk> for Image {
    /// A raw image.
    fn from(file: FileDisk) -> Self {
        Self { file, qcow2: None }
    }
}

impl AsFd for Image {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
