//! Formats of disk images that are recognized, because to read them as raw ones would be wrong, but are not read.

use std::io::{Error, ErrorKind, IoSliceMut, Result};
use std::os::fd::BorrowedFd;

/// A format: its name, and bytes that its images have at an offset. qemu-img recognizes them by the same ones.
struct Format(&'static str, usize, &'static [u8]);

const FORMATS: [Format; 9] = [
    Format("VMDK", 0, b"KDMV"),
    Format("VMDK", 0, b"COWD"),
    Format("VMDK", 0, b"# Disk DescriptorFile"),
    Format("VDI", 64, b"\x7f\x10\xda\xbe"),
    Format("VHDX", 0, b"vhdxfile"),
    // Those of a fixed size are raw, with these bytes behind the disk.
    Format("VHD", 0, b"conectix"),
    Format("QED", 0, b"QED\0"),
    Format("Parallels", 0, b"WithoutFreeSpace"),
    Format("Parallels", 0, b"WithouFreSpacExt"),
];

/// Bytes of the longest beginning that a format has.
const BYTES: usize = 68;

/// An error of kind `Unsupported` if a file is an image of such a format.
pub fn refuse(file: BorrowedFd<'_>) -> Result<()> {
    let mut head = [0; BYTES];
    let bytes = rustix::io::preadv(file, &mut [IoSliceMut::new(&mut head)], 0)?;
    let has = |format: &&Format| {
        head[..bytes].get(format.1..).is_some_and(|rest| rest.starts_with(format.2))
    };
    match FORMATS.iter().find(has) {
        None => Ok(()),
        Some(Format(name, ..)) => {
            let text =
                format!("it is a {name} image: make a raw one of it by qemu-img convert -O raw");
            Err(Error::new(ErrorKind::Unsupported, text))
        }
    }
}

#[cfg(test)]
mod tests;
