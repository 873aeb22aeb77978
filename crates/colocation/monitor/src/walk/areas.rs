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
    /// Address of the mask of CPUs that can be there, which is read-only, and its bits.
    possible: Option<(u64, u64)>,
}

impl Areas {
    pub fn new(profile: &Profile<'_>) -> Option<Self> {
        let (table, cpus) = (profile.symbol("__per_cpu_offset")?, profile.symbol("nr_cpu_ids")?);
        let possible = profile.symbol("__cpu_possible_mask").map(|at| {
            let behind = profile.symbols_from(at.saturating_add(1)).next();
            (at, 8 * behind.map_or(0, |symbol| symbol.address - at))
        });
        Some(Self { table, cpus, possible })
    }

    /// The area of `cpu`; `None` behind the last one. The number of CPUs can be forged: one that can be there counts.
    pub fn of<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, cpu: u64) -> Option<u64> {
        let cpus = kernel.u32(self.cpus).map_or(1, u64::from);
        let can_be = || {
            let mask = self.possible.filter(|(_, bits)| cpu < *bits);
            mask.is_some_and(|(mask, _)| is_in_mask(kernel, mask, cpu) == Some(true))
        };
        let is_one = cpu < MAX_CPUS && (cpu < cpus || can_be());
        is_one.then(|| kernel.u64(self.table + 8 * cpu).unwrap_or(0))
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
