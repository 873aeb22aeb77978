//! Where Linux keeps what the check must know about a module.

use super::super::layout::{Table, TextLayout};
use crate::kernel::{Kernel, KERNEL_HALF};
use crate::memory::{KernelMemory, PAGE_BYTES};
use crate::modules::Notes;
use crate::owner::TAINT_LIVE_PATCH;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::{Profile, ProfileError};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

/// Maximum size of a module's code, in bytes.
const LARGEST: u64 = 1 << 30;
/// Maximum length of a module's name with its end (`MODULE_NAME_LEN` in Linux's `module.h`).
const NAME_BYTES: usize = 56;
/// Maximum number of entries of a table.
const MAX_ENTRIES: u64 = 1 << 16;

pub(super) const WANTS: Wants = Wants {
    symbols: &[],
    members: &[
        ("module", "jump_entries", Optional),
        ("module", "mkobj.kobj.sd", Optional),
        ("module", "num_jump_entries", Optional),
        ("module", "num_static_call_sites", Optional),
        ("module", "static_call_sites", Optional),
        ("kernfs_node", "id", Optional),
    ],
    constants: &[],
};

/// What tells a module from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// Address of its `struct module`.
    pub module: u64,
    /// Its code: the address of the first page, and of the one behind.
    pub start: u64,
    pub end: u64,
    /// The number of its directory in sysfs.
    pub directory: u64,
}

/// Offsets in `struct module` of the pointer to a table, and of the number of its entries.
type TableOffsets = Option<(u64, u64)>;

#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub text: TextLayout,
    jumps: TableOffsets,
    calls: TableOffsets,
    /// Offsets of base and size of a module's code, and of its initialization's.
    code: (u64, u64),
    init: Option<(u64, u64)>,
    /// Offset of a module's state; the values of one that is neither coming nor going, and of one that is going.
    state: u64,
    live: u64,
    going: u64,
    /// Offset of the pointer to the module's directory; in that, of its number.
    directory: u64,
    number: u64,
    /// `None` if the kernel keeps none.
    notes: Option<Notes>,
}

impl Layout {
    /// Looks it up in `profile`.
    pub fn new(profile: &Profile<'_>) -> Result<Option<Self>, ProfileError> {
        let text =
            TextLayout::new(profile).map_err(|missing| ProfileError::Missing(missing.0.into()))?;
        Ok(Self::of_modules(profile, text))
    }

    /// `None` if the kernel has no modules, or does not describe them.
    fn of_modules(profile: &Profile<'_>, text: TextLayout) -> Option<Self> {
        let offset = |structure, member| profile.field(structure, member).map(|field| field.offset);
        let table = |entries, count| Some((offset("module", entries)?, offset("module", count)?));
        // A table that the kernel has of its own, modules have as well.
        let jumps = table("jump_entries", "num_jump_entries");
        let calls = table("static_call_sites", "num_static_call_sites");
        if text.jumps.is_some() != jumps.is_some() || text.calls.is_some() != calls.is_some() {
            return None;
        }
        Some(Self {
            jumps,
            calls,
            code: text.owners.module_code?,
            init: text.owners.module_init,
            state: text.owners.module_state?.0,
            going: text.owners.module_state?.1,
            live: profile.constant("MODULE_STATE_LIVE")?,
            directory: offset("module", "mkobj.kobj.sd")?,
            number: offset("kernfs_node", "id")?,
            notes: Notes::new(profile),
            text,
        })
    }

    /// The number of the directory of `module`; `None` if it has none, as before it is live and once it is removed.
    pub fn directory<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, module: u64) -> Option<u64> {
        let directory = kernel.u64(module.wrapping_add(self.directory))?;
        kernel.u64(directory.wrapping_add(self.number))
    }

    /// What tells `module` from all others; `None` if it has no directory, or no sane code.
    pub fn identity<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        module: u64,
    ) -> Option<Identity> {
        let directory = self.directory(kernel, module)?;
        let base = kernel.u64(module.wrapping_add(self.code.0))?;
        let bytes = self.half(kernel, module, self.code.1)?;
        let end = base.checked_add(bytes)?.checked_next_multiple_of(PAGE_BYTES)?;
        let is_sane = base >= KERNEL_HALF && base % PAGE_BYTES == 0 && bytes <= LARGEST;
        is_sane.then_some(Identity { module, start: base, end, directory })
    }

    /// Whether `module` is live.
    pub fn is_live<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, module: u64) -> bool {
        self.half(kernel, module, self.state) == Some(self.live)
    }

    /// Whether `module` is being removed. Then Linux leaves the breakpoints of its probes behind.
    pub fn is_going<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, module: u64) -> bool {
        self.half(kernel, module, self.state) == Some(self.going)
    }

    /// Whether Linux changes the code of `module` only where its tables say. Of a live patch, it does elsewhere when
    /// other modules come.
    pub fn is_settled<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, module: u64) -> bool {
        let taints = self.text.owners.module_taints;
        let taints = taints.map_or(Some(0), |at| kernel.u64(module.wrapping_add(at)));
        self.is_live(kernel, module)
            && self.init.is_none_or(|(_, bytes)| self.half(kernel, module, bytes) == Some(0))
            && taints.is_some_and(|taints| taints & TAINT_LIVE_PATCH == 0)
    }

    fn half<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        module: u64,
        offset: u64,
    ) -> Option<u64> {
        kernel.u32(module.wrapping_add(offset)).map(u64::from)
    }

    /// The name of `module`.
    pub fn name<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, module: u64) -> String {
        let at = module.wrapping_add(self.text.owners.module_name);
        kernel.c_string(at, NAME_BYTES).unwrap_or_default()
    }

    /// The ELF notes of `module`.
    pub fn notes<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, module: u64) -> Vec<u8> {
        self.notes.map(|notes| notes.read(kernel, module)).unwrap_or_default()
    }

    /// The jump labels of `module`.
    pub fn jumps<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, module: u64) -> Option<Table> {
        let table = self.text.jumps.as_ref()?;
        Some(Table { range: range(kernel, module, self.jumps?, table.size)?, ..table.clone() })
    }

    /// The static calls of `module`.
    pub fn calls<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, module: u64) -> Option<Table> {
        let table = self.text.calls.as_ref()?;
        Some(Table { range: range(kernel, module, self.calls?, table.size)?, ..table.clone() })
    }
}

/// The range of a table of `module` with entries of `size` bytes.
fn range<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    module: u64,
    (entries, count): (u64, u64),
    size: u64,
) -> Option<Range<u64>> {
    let start = kernel.u64(module.wrapping_add(entries)).filter(|&start| start >= KERNEL_HALF)?;
    let count = u64::from(kernel.u32(module.wrapping_add(count))?).min(MAX_ENTRIES);
    // Entries are searched in batches, of which the last one is cut.
    let end = start.checked_add(count * size)?;
    end.checked_add(PAGE_BYTES)?;
    Some(start..end)
}
