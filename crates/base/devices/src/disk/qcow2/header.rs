//! The header of a qcow2 image: what can be used, decided before anything else of the image is read.

use std::io::{Error, ErrorKind, IoSliceMut, Result};
use std::os::fd::BorrowedFd;

/// `QFI\xfb`.
const MAGIC: [u8; 4] = *b"QFI\xfb";
/// Bytes of the header that count: all of version 3.
const BYTES: usize = 104;
/// Maximum bytes of a backing file's name.
const MAX_NAME: usize = 1023;
/// Maximum bytes of the table of tables, and of the table of reference counts: those of QEMU.
const MAX_L1: u64 = 32 << 20;
const MAX_REFERENCES: u64 = 8 << 20;
/// Maximum bytes of a disk. Offsets in the file have 56 bits.
const MAX_DISK: u64 = 1 << 55;

/// Incompatible features, and why an image with one is refused.
const FEATURES: [(u64, &str); 5] = [
    (0, "was not closed: run qemu-img check -r all on it"),
    (1, "is marked as corrupt: run qemu-img check -r all on it"),
    (2, "has an external data file: make one file of both by qemu-img convert -O qcow2"),
    (3, "is compressed by zstd: convert it by qemu-img convert -O qcow2"),
    (4, "has extended L2 entries: convert it by qemu-img convert -O qcow2"),
];

/// An image that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    version: u32,
    bytes: u64,
    cluster_bits: u32,
    l1_at: u64,
    l1_bytes: u64,
}

fn no(kind: ErrorKind, text: &str) -> Error {
    Error::new(kind, format!("the qcow2 image {text}"))
}

fn broken(what: &str) -> Error {
    no(ErrorKind::InvalidData, &format!("is broken: {what}: run qemu-img check on it"))
}

fn unsupported(text: &str) -> Error {
    no(ErrorKind::Unsupported, text)
}

fn word(header: &[u8; BYTES], at: usize) -> u32 {
    u32::from_be_bytes([0, 1, 2, 3].map(|i| header[at + i]))
}

fn long(header: &[u8; BYTES], at: usize) -> u64 {
    u64::from(word(header, at)) << 32 | u64::from(word(header, at + 4))
}

/// Fills the buffer from byte `at` of the file on, and returns how many bytes the file has there.
fn read(file: BorrowedFd<'_>, to: &mut [u8], at: u64) -> Result<usize> {
    let mut done = 0;
    while done < to.len() {
        let rest = &mut [IoSliceMut::new(&mut to[done..])];
        done += match rustix::io::preadv(file, rest, at.saturating_add(done as u64))? {
            0 => break,
            count => count,
        };
    }
    Ok(done)
}

impl Header {
    /// Reads the header of a file of `end` bytes, which is to be written if `write`. None if it is no qcow2 image.
    ///
    /// # Errors
    /// An I/O error, or why the image cannot be used.
    pub fn read(file: BorrowedFd<'_>, end: u64, write: bool) -> Result<Option<Self>> {
        let mut bytes = [0; BYTES];
        let known = BYTES.min(end as usize);
        read(file, &mut bytes[..known], 0)?;
        if bytes[..4] != MAGIC {
            return Ok(None);
        }
        let (name, length) = (long(&bytes, 8), word(&bytes, 16) as usize);
        if name == 0 {
            return Self::parse(&bytes, write).map(Some);
        }
        // Whoever made the image has chosen the name: it may be that of any file of this machine.
        let mut text = [0; MAX_NAME];
        let text = &mut text[..length.min(MAX_NAME)];
        let bytes = read(file, text, name).unwrap_or(0);
        let name = String::from_utf8_lossy(&text[..bytes]).escape_debug().to_string();
        Err(unsupported(&format!(
            "has the backing file {name}: if it may have that, make one file of both by qemu-img convert -O qcow2"
        )))
    }

    fn parse(header: &[u8; BYTES], write: bool) -> Result<Self> {
        let (word, long) = (|at| word(header, at), |at| long(header, at));
        let version = word(4);
        if !(2..=3).contains(&version) {
            let text = format!(
                "has version {version}, not 2 or 3: make a raw one of it by qemu-img convert -O raw"
            );
            return Err(unsupported(&text));
        }
        if word(32) != 0 {
            return Err(unsupported("is encrypted: decrypt it by qemu-img convert -O qcow2"));
        }
        let features = if version == 3 { long(72) } else { 0 };
        for (bit, text) in FEATURES {
            if features >> bit & 1 != 0 {
                return Err(unsupported(text));
            }
        }
        if features != 0 {
            let text =
                format!("has unknown features ({features:#x}): convert it by qemu-img convert");
            return Err(unsupported(&text));
        }
        if write && word(60) != 0 {
            let text =
                "has snapshots: only reading is possible, or delete them by qemu-img snapshot -d";
            return Err(unsupported(text));
        }
        let cluster_bits = word(20);
        if !(9..=21).contains(&cluster_bits) {
            return Err(broken("size of clusters"));
        }
        let cluster = 1 << cluster_bits;
        let (bytes, l1_at, l1_bytes) = (long(24), long(40), u64::from(word(36)) * 8);
        if bytes > MAX_DISK {
            return Err(broken("size of the disk"));
        }
        if bytes < super::SECTOR {
            return Err(unsupported("is shorter than one sector of 512 bytes"));
        }
        let needed = bytes.div_ceil(cluster * cluster / 8) * 8;
        if l1_bytes < needed || l1_bytes > MAX_L1 || l1_at % cluster != 0 || l1_at > MAX_DISK {
            return Err(broken("L1 table"));
        }
        let (references_at, references) = (long(48), u64::from(word(56)) << cluster_bits);
        if references == 0
            || references > MAX_REFERENCES
            || references_at % cluster != 0
            || references_at > MAX_DISK
        {
            return Err(broken("table of reference counts"));
        }
        Ok(Self { version, bytes, cluster_bits, l1_at, l1_bytes })
    }

    /// Bytes of the disk.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of a cluster.
    pub fn cluster(&self) -> u64 {
        1 << self.cluster_bits
    }

    /// The table of tables.
    pub fn l1(&self) -> std::ops::Range<u64> {
        self.l1_at..self.l1_at + self.l1_bytes
    }

    /// Whether a cluster can be zeros without storage.
    pub fn has_zeros(&self) -> bool {
        self.version == 3
    }

    /// Maximum bytes of the file, which has `end` bytes now, when every cluster has been written: per cluster 8 bytes
    /// in an L2 table, and at most 8 for each reference count, also those of tables.
    pub fn largest(&self, end: u64) -> u64 {
        let clusters = self.bytes.div_ceil(self.cluster());
        let tables = clusters * 32 + 256 * self.cluster();
        end.saturating_add(self.bytes).saturating_add(tables)
    }
}

#[cfg(test)]
mod tests;
