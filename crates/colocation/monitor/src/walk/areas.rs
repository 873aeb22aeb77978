//! The memory that Linux has for each CPU.

use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::Profile;

/// Maximum number of CPUs (`CONFIG_NR_CPUS_RANGE_END` of Linux for x86).
const MAX_CPUS: u64 = 8192;

/// The memory that each CPU has for itself: a variable's symbol is its offset there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Areas {
    /// Address of the areas' addresses; address of the number of CPUs.
    table: u64,
    cpus: u64,
}

impl Areas {
    pub fn new(profile: &Profile<'_>) -> Option<Self> {
        let (table, cpus) = (profile.symbol("__per_cpu_offset")?, profile.symbol("nr_cpu_ids")?);
        Some(Self { table, cpus })
    }

    /// The area of `cpu`; `None` behind the last one.
    pub fn of<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, cpu: u64) -> Option<u64> {
        let cpus = kernel.u32(self.cpus).map_or(1, u64::from).min(MAX_CPUS);
        (cpu < cpus).then(|| kernel.u64(self.table + 8 * cpu).unwrap_or(0))
    }
}

/// Whether the mask of CPUs at `mask` has the CPU `number`; `None` if it cannot be read.
pub(crate) fn is_in_mask<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    mask: u64,
    number: u64,
) -> Option<bool> {
    let word = kernel.u64(mask.wrapping_add(number / 64 * 8))?;
    Some(word >> (number % 64) & 1 != 0)
}
