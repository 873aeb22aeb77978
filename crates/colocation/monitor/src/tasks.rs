//! The check `tasks`: every task is in every structure where Linux keeps tasks.
//!
//! A task that hides is unlinked from some of them and runs on. The views are: the list of processes, the list of
//! threads of each process, the index of numbers (`init_pid_ns.idr`) with the lists below each number, and the lists
//! of control groups. A pass notes for each task which views have it. What lacks a view is a *suspect*; it is looked at
//! again, by itself, in later slices, and reported after [`CONFIRM_RECHECKS`] looks in a row that found the same task still
//! missing while the locks of the structures were free and it was neither being born nor dead.
//!
//! One call of [`Check::step`] is one look: it must not be called twice while Linux stands still.

mod layout;
mod list_cursor;
mod pass;
mod repair;
mod report;
mod seen;
mod suspect;
mod task;

use crate::check::{Budget, Check, Step};
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::{Profile, ProfileError};
use alloc::vec::Vec;
use layout::TaskLayout;
use pass::{Pass, Progress};
use seen::SeenTasks;
use suspect::{Recheck, SuspectTask};

/// Most tasks that a pass takes note of: half a MiB to a MiB of memory. More are not judged.
pub const MAX_TASKS: usize = 1 << 16;
/// How many looks in a row confirm.
pub const CONFIRM_RECHECKS: u32 = 3;
/// Most suspects at a time, and how many of them one slice looks at.
const MAX_SUSPECTS: usize = 64;
const SUSPECTS_PER_SLICE: usize = 16;
/// Of them, most that are dormant: many exits at once must not keep the others out.
const MAX_DORMANT_SUSPECTS: usize = 16;
/// How many passes in a row must find a list broken.
const BROKEN_PASSES: u32 = 3;

/// Pass, one bit each.
pub(crate) mod view {
    /// The list of processes.
    pub const TASKS: u8 = 1;
    /// The list of threads of the process's signal structure.
    pub const THREADS: u8 = 2;
    /// The list of threads from the process's first thread, where Linux has it (before 6.7).
    pub const GROUP: u8 = 4;
    /// The index of numbers, and the number's list of threads.
    pub const PID: u8 = 8;
    /// The number's list of processes.
    pub const TGID: u8 = 16;
    /// The lists of control groups.
    pub const CGROUP: u8 = 32;
    /// Each with its name.
    pub const NAMES: [(u8, &str); 6] = [
        (TASKS, "the process list"),
        (THREADS, "its process's thread list"),
        (GROUP, "its process's thread_group list"),
        (PID, "the PID index"),
        (TGID, "its PID's process list"),
        (CGROUP, "its control group"),
    ];
}

/// The check.
pub struct TaskCheck {
    layout: TaskLayout,
    seen: SeenTasks,
    pass: Pass,
    /// The slot of `seen` that is judged next, while a pass is being judged.
    judging: Option<usize>,
    suspects: Vec<SuspectTask>,
    /// The suspect that is looked at next.
    next_suspect: usize,
    /// For how many passes in a row the list of processes could not be walked.
    broken_passes: u32,
}

impl TaskCheck {
    /// Fails where the profile lacks something that the check needs.
    pub fn new(profile: &Profile<'_>) -> Result<Self, ProfileError> {
        let layout = TaskLayout::new(profile)?;
        Ok(Self {
            pass: Pass::new(&layout),
            layout,
            seen: SeenTasks::new(MAX_TASKS),
            judging: None,
            suspects: Vec::new(),
            next_suspect: 0,
            broken_passes: 0,
        })
    }

    /// Looks at some of the suspects again.
    fn recheck_suspects<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) {
        for _ in 0..self.suspects.len().min(SUSPECTS_PER_SLICE) {
            if budget.spent() || self.suspects.is_empty() {
                return;
            }
            if self.next_suspect >= self.suspects.len() {
                self.next_suspect = 0;
            }
            let suspect = &mut self.suspects[self.next_suspect];
            match suspect.recheck(kernel, &self.layout) {
                Recheck::Clear => {
                    self.suspects.swap_remove(self.next_suspect);
                    continue;
                }
                Recheck::Busy => *retries += 1,
                Recheck::Unsure => {}
                Recheck::Confirmed(missing) => {
                    found(report::finding(kernel, &self.layout, suspect.identity, missing))
                }
            }
            self.next_suspect += 1;
        }
    }

    /// Judges one slot of what the pass has seen.
    fn judge<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, slot: usize) {
        let Some((task, bits)) = self.seen.take(slot) else { return };
        let verdict = suspect::judge(kernel, &self.layout, task, bits | self.pass.incomplete);
        let unreached = verdict.as_ref().map_or(0, |suspect| suspect.unreached);
        if let Some(known) = self.suspects.iter_mut().find(|suspect| suspect.identity.task == task)
        {
            return known.another_pass(unreached);
        }
        let Some(suspect) = verdict else { return };
        let dormant = self.suspects.iter().filter(|suspect| suspect.dormant).count();
        let room = self.suspects.len() < MAX_SUSPECTS
            && !(suspect.dormant && dormant >= MAX_DORMANT_SUSPECTS);
        if room {
            self.suspects.push(suspect);
        }
    }
}

impl<M: KernelMemory> Check<M> for TaskCheck {
    fn name(&self) -> &'static str {
        "tasks"
    }

    fn step(
        &mut self,
        kernel: &Kernel<'_, M>,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) -> Step {
        self.recheck_suspects(kernel, budget, found, retries);
        if self.judging.is_none() {
            self.pass.resume(kernel, &self.layout, retries);
        }
        while !budget.spent() {
            let Some(slot) = self.judging else {
                if self.pass.advance(kernel, &self.layout, &mut self.seen) == Progress::Done {
                    self.judging = Some(0);
                }
                continue;
            };
            if slot < self.seen.slots() {
                self.judge(kernel, slot);
                self.judging = Some(slot + 1);
                continue;
            }
            match self.pass.broken {
                Some(broken) => {
                    self.broken_passes += 1;
                    if self.broken_passes == BROKEN_PASSES {
                        found(report::broken_list(&self.layout, broken));
                    }
                }
                None => self.broken_passes = 0,
            }
            let count = self.seen.clear();
            self.pass = Pass::new(&self.layout);
            self.judging = None;
            return Step::Done(count as u64);
        }
        Step::Spent
    }
}

#[cfg(test)]
mod tests;
