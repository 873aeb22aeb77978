//! The interface of a check: work in slices.

use crate::finding::{Finding, Links, Verdict};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;

/// The time that remains in a slice.
pub trait Budget {
    /// Whether the slice is over. A check asks at least every few thousand instructions.
    fn spent(&mut self) -> bool;

    /// Whether half of the slice is over. A check begins nothing long after that.
    fn half_spent(&mut self) -> bool {
        self.spent()
    }
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The slice is over; the pass continues with the next step.
    Spent,
    /// A pass is complete; the number of items (tasks, pages) that it covered.
    Done(u64),
}

/// What a check covers now, and what it had to leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The check still learns what it will compare with.
    pub learning: bool,
    /// Percentage of the first pass that is done. It need not be exact.
    pub learned: u8,
    /// Bytes of an item; 0 if an item is not memory.
    pub item_bytes: u64,
    /// Items that the last complete pass had to leave out.
    pub unjudged: u64,
    /// Number of times that a pass began again because Linux had changed what it walked.
    pub restarts: u64,
    /// Number of suspects that were dropped for want of room, or because they could not be resolved.
    pub dropped: u64,
}

/// A check covers its whole subject in passes, and each pass in as many slices as it needs.
///
/// Linux may free anything between two slices. A check may keep an address, but must validate it again before use.
pub trait Check<M: KernelMemory> {
    /// The name, at most 32 bytes: `tasks`, `text`.
    fn name(&self) -> &'static str;

    /// What the check covers now.
    fn coverage(&self) -> Coverage {
        Coverage::default()
    }

    /// Whether the check still sees what it reported as a finding of kind `what` at `address`.
    fn stands(&self, what: &str, address: u64) -> bool;

    /// Whether a repair may do harm while another check has an open finding: changed code may do the same once more.
    fn needs_intact_code(&self) -> bool {
        false
    }

    /// Looks at links that a repair of this check's wrote. Linux must have run since the repair.
    fn verify(&self, _kernel: &Kernel<'_, M>, _links: &Links) -> Verdict {
        Verdict::Unknown
    }

    /// Continues the pass, or begins one. Calls `found` with each confirmed finding, and adds to `retries` the looks
    /// that were deferred because Linux was changing the data.
    fn step(
        &mut self,
        kernel: &Kernel<'_, M>,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) -> Step;
}
