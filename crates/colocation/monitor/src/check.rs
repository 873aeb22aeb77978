//! The interface of a check: work in slices.

use crate::disarm::{Culprit, Plan};
use crate::finding::{Finding, Links, Verdict};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Wants;
use crate::profile::{Profile, ProfileError};
use alloc::vec::Vec;
use core::ops::Range;
use kyozon_abi::layer::Write;

/// What a check declares before it exists.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The name, at most 32 bytes: `tasks`, `text`.
    pub name: &'static str,
    /// What it needs from a profile.
    pub wants: &'static [Wants],
    /// Percentage of a slice that it gets, plus the time that the checks before it left unused.
    pub share: u64,
    /// Milliseconds that a pass should take at most. If its share is too small for that, the check gets more, at the
    /// expense of those behind it. 0: its share is enough, however long a pass takes.
    pub pass_ms: u64,
    /// What it offers to repair.
    pub repairs: Repairs,
}

/// What a check offers to repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repairs {
    /// Nothing: it only reports.
    Nothing,
    /// Its findings, whatever else is open.
    Always,
    /// Its findings while no other check has an open one: changed code may do the same damage once more.
    OnIntactCode,
}

/// A check that the registry can make.
pub trait Make: Sized {
    /// What it declares.
    const ABOUT: About;

    /// The check for a kernel with `profile`. Linux must not know `seed`.
    ///
    /// # Errors
    ///
    /// [`ProfileError`] if the profile lacks something that the check cannot do without.
    fn make(profile: &Profile<'_>, seed: u64) -> Result<Self, ProfileError>;
}

/// The time that remains in a slice.
pub trait Budget {
    /// Whether the slice is over. A check asks at least every few thousand instructions.
    fn spent(&mut self) -> bool;

    /// Milliseconds of a clock that goes on steadily; what it counts from has no meaning. Always 0 if there is none.
    fn clock_ms(&mut self) -> u64 {
        0
    }
    /// Whether the checks have the CPU for themselves, so that a pass need not leave time to others.
    fn is_whole(&self) -> bool {
        false
    }

    /// Whether half of the slice is over. A check begins nothing long after that.
    fn half_spent(&mut self) -> bool {
        self.spent()
    }
}

/// Calls `advance` until it returns true, or until the slice is over. Returns whether it did.
pub(crate) fn until_done(budget: &mut dyn Budget, mut advance: impl FnMut() -> bool) -> bool {
    loop {
        if advance() {
            return true;
        }
        if budget.spent() {
            return false;
        }
    }
}

/// Memory that Linux hardly ever writes: whole pages. With the hypervisor, each write there is shown to the checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Physical addresses.
    pub range: Range<u64>,
    /// Physical address of the top page table of the address space in which Linux patches it, 0 for none. Breakpoints
    /// that Linux sets there are not shown: only its later steps are.
    pub space: u64,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The slice is over; the pass continues with the next step.
    Spent,
    /// The pass continues with the next step, and this one has nothing left to do.
    Rests,
    /// A pass is complete; the number of items (tasks, pages) that it covered.
    Done(u64),
}

/// The rests of a check between its passes: one pass begins per so many steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    steps: u32,
    rest: u32,
}

impl Pace {
    /// A pass begins at the first step, and then every `steps` steps.
    pub fn every(steps: u32) -> Self {
        Self { steps, rest: 0 }
    }

    /// Begins the next pass at once.
    pub fn hurry(&mut self) {
        self.rest = 0;
    }

    /// Counts a step; whether the check rests at this one. `in_pass`: a pass has begun and is not complete.
    pub fn rests(&mut self, in_pass: bool) -> bool {
        self.rest = self.rest.saturating_sub(1);
        if in_pass || self.rest > 0 {
            return !in_pass;
        }
        self.rest = self.steps;
        false
    }
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
    /// What the check declares.
    fn about(&self) -> &'static About;

    /// What the check covers now.
    fn coverage(&self) -> Coverage {
        Coverage::default()
    }

    /// The memory whose writes the check wants to know once its first pass is complete.
    fn watched(&self, _kernel: &Kernel<'_, M>) -> Vec<Watched> {
        Vec::new()
    }

    /// From now on, every write to all watched memory is shown; or, if not `all`, some were not.
    fn sees_writes(&mut self, _all: bool) {}

    /// There was no tick for so long that what explains the writes that are shown next may be gone.
    fn misses_ticks(&mut self) {}

    /// Judges writes to watched memory and registers, of any check's, in their order. They are newer than the last
    /// step.
    fn judge_writes(
        &mut self,
        _kernel: &Kernel<'_, M>,
        _writes: &[Write],
        _found: &mut dyn FnMut(Finding),
    ) {
    }

    /// Number of suspects that only further looks can confirm.
    fn waiting(&self) -> u64 {
        0
    }

    /// Whether the check still sees what it reported as a finding of kind `what` at `address`.
    fn stands(&self, what: &str, address: u64) -> bool;

    /// What the check reported at `address` was repaired: if it is there again, it is news.
    fn forget(&mut self, _address: u64) {}

    /// Looks at links that a repair of this check's wrote. Linux must have run since the repair.
    fn verify(&self, _kernel: &Kernel<'_, M>, _links: &Links) -> Verdict {
        Verdict::Unknown
    }

    /// The owner of the code that has `address`, if this check can take out its hooks.
    fn culprit(&self, _kernel: &Kernel<'_, M>, _address: u64) -> Option<Culprit> {
        None
    }

    /// A later pass makes, from its beginning on, a plan that takes out the hooks of `culprit`. Returns false if too
    /// many plans wait.
    fn disarm(&mut self, _culprit: Culprit) -> bool {
        false
    }

    /// Takes a plan that was made.
    fn plan(&mut self) -> Option<Plan> {
        None
    }

    /// Before a restart: looks anew at all that a restart would start. Whether that is as it was at the first look;
    /// `None` if the slice ended before this is known. Further calls go on.
    fn is_sound(&mut self, _kernel: &Kernel<'_, M>, _budget: &mut dyn Budget) -> Option<bool> {
        Some(true)
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
