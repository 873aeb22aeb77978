//! The ELF notes of a module, such as its build ID.

use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use alloc::vec;
use alloc::vec::Vec;

/// Maximum number of sections of notes, and of bytes in one.
const MAX_SECTIONS: u64 = 16;
const MAX_BYTES: u64 = 4096;

pub(super) const WANTS: Wants = Wants {
    symbols: &[],
    members: &[
        ("module", "notes_attrs", Optional),
        ("module_notes_attrs", "attrs", Optional),
        ("module_notes_attrs", "notes", Optional),
        ("bin_attribute", "private", Optional),
        ("bin_attribute", "size", Optional),
    ],
    constants: &[],
};

/// Where Linux keeps the notes of modules: behind the files that show them in sysfs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notes {
    /// Offset of the pointer to them; in that, of their number and of the first one.
    all: u64,
    count: u64,
    first: u64,
    /// Bytes of one; in that, offsets of the address and of the number of bytes.
    stride: u64,
    address: u64,
    bytes: u64,
}

impl Notes {
    /// Looks it up in `profile`; `None` if the kernel keeps none.
    pub fn new(profile: &Profile<'_>) -> Option<Self> {
        let offset = |structure, member| profile.field(structure, member).map(|field| field.offset);
        Some(Self {
            all: offset("module", "notes_attrs")?,
            count: offset("module_notes_attrs", "notes")?,
            first: offset("module_notes_attrs", "attrs")?,
            stride: profile.size_of("bin_attribute")?,
            address: offset("bin_attribute", "private")?,
            bytes: offset("bin_attribute", "size")?,
        })
    }

    /// The notes of `module`, one section after the other.
    pub fn read<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, module: u64) -> Vec<u8> {
        let mut notes = Vec::new();
        let Some(all) = kernel.u64(module.wrapping_add(self.all)) else { return notes };
        let count = kernel.u32(all.wrapping_add(self.count)).map_or(0, u64::from);
        for number in 0..count.min(MAX_SECTIONS) {
            let section = all.wrapping_add(self.first).wrapping_add(number * self.stride);
            let word = |offset: u64| kernel.u64(section.wrapping_add(offset));
            let Some((address, bytes)) = word(self.address).zip(word(self.bytes)) else { break };
            let mut section = vec![0; bytes.min(MAX_BYTES) as usize];
            if kernel.bytes(address, &mut section).is_some() {
                notes.extend(section);
            }
        }
        notes
    }
}
