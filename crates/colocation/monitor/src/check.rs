//! The interface of a check: work in slices.

use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;

/// The time that remains in a slice.
pub trait Budget {
    /// Whether the slice is over. A check asks at least every few thousand instructions.
    fn spent(&mut self) -> bool;
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The slice is over; the pass continues with the next step.
    Spent,
    /// A pass is complete; the number of items (tasks, pages) that it covered.
    Done(u64),
}

/// A check covers its whole subject in passes, and each pass in as many slices as it needs.
///
/// Linux may free anything between two slices. A check may keep an address, but must validate it again before use.
pub trait Check<M: KernelMemory> {
    /// The name, at most 32 bytes: `tasks`, `text`.
    fn name(&self) -> &'static str;

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
