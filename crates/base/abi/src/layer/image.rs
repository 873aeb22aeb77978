//! The header of a flat image.

use crate::assert_size;

/// [`ImageHeader::magic`]: "KYOZON" and two bytes that no text file contains.
pub const IMAGE_MAGIC: u64 = 0x1a00_4e4f_5a4f_594b;
/// [`ImageHeader::kind`]: the layer.
pub const IMAGE_LAYER: u32 = 1;
/// [`ImageHeader::kind`]: a cokernel.
pub const IMAGE_COKERNEL: u32 = 2;
/// [`ImageHeader::kind`]: a user task of the cokernel: an ELF file of `data_bytes` bytes after one page of header.
pub const IMAGE_TASK: u32 = 3;
/// [`ImageHeader::kind`]: the hypervisor of mode vmm.
pub const IMAGE_HYPERVISOR: u32 = 4;

/// The first bytes of an image. Text, read-only data and data follow in this order, each from a page boundary on.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageHeader {
    /// [`IMAGE_MAGIC`].
    pub magic: u64,
    /// [`LAYER_VERSION`](super::LAYER_VERSION).
    pub version: u32,
    /// `IMAGE_*`.
    pub kind: u32,
    /// Virtual address of this header.
    pub base: u64,
    /// Bytes of text from `base` on, a multiple of 4096. Mapped readable and executable.
    pub text_bytes: u64,
    /// Bytes of read-only data after the text, a multiple of 4096.
    pub rodata_bytes: u64,
    /// Bytes of initialised data in the file, after the read-only data. Mapped readable and writable.
    pub data_bytes: u64,
    /// Bytes of memory from the start of data to the end of bss: a multiple of 4096, at least `data_bytes`.
    pub memory_bytes: u64,
    /// Virtual address of the entry: the layer's `extern "C" fn(*const LayerEntry, *mut Trip)`, called on each tick, or
    /// the cokernel's `start`, `extern "C" fn(*const BootBlock)`.
    pub entry: u64,
}
assert_size!(ImageHeader, 64);
