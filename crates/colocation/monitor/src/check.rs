//! What every check is: work in slices.

use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;

/// How much may still be done in this slice.
pub trait Budget {
    /// Whether the slice is over. Asked at least every few thousand instructions.
    fn spent(&mut self) -> bool;
}

/// How a slice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The slice is over; the pass goes on at the next call.
    Spent,
    /// A pass is complete, and looked at so many things (tasks, pages).
    Done(u64),
}

/// A check: looks at all of its subject in passes, each in as many slices as it takes.
///
/// Nothing is kept from one slice to the next that Linux may have freed meanwhile, but addresses that are checked anew.
pub trait Check<M: KernelMemory> {
    /// Its name, at most 32 bytes: `tasks`, `text`.
    fn name(&self) -> &'static str;

    /// Goes on with the pass, or begins one. Calls `found` with what is confirmed; says in `retries` how often a look
    /// was put off because Linux was changing what was looked at.
    fn step(
        &mut self,
        kernel: &Kernel<'_, M>,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) -> Step;
}
