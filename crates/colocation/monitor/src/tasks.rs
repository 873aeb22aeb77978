//! The check `tasks`: finds tasks that are missing from a structure where Linux keeps tasks (cross-view validation).
//!
//! A hidden task is unlinked from some structures and keeps running. Each structure is a *view* of the tasks: the
//! process list, the thread list of each process, the PID index (`init_pid_ns.idr`) with the lists at each PID, and the
//! cgroup lists. A pass records which views have each task. A task that a view lacks is a *suspect*. Later slices look
//! at it again, one task at a time. It is reported after [`CONFIRM_RECHECKS`] consecutive looks in which the same task
//! was missing, the locks of the structures were free, and the task was neither new nor dead.
//!
//! One call of [`Check::step`] is one look: Linux must run between two calls.

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

/// Maximum number of tasks that a pass records, in 0.5 to 1 MiB of memory. Further tasks are not judged.
pub const MAX_TASKS: usize = 1 << 16;
/// Consecutive looks that confirm a suspect.
pub const CONFIRM_RECHECKS: u32 = 3;
/// Maximum number of suspects, and of suspects looked at per slice.
const MAX_SUSPECTS: usize = 64;
const SUSPECTS_PER_SLICE: usize = 16;
/// Maximum number of dormant suspects: many exits at once must not displace the others.
const MAX_DORMANT_SUSPECTS: usize = 16;
/// Consecutive passes that must find the process list damaged before it is reported.
const BROKEN_PASSES: u32 = 3;

/// The views, one bit each.
pub(crate) mod view {
    /// The process list.
    pub const TASKS: u8 = 1;
    /// The thread list in the process's signal structure.
    pub const THREADS: u8 = 2;
    /// The thread list at the process's first thread (`thread_group`), in Linux before 6.7.
    pub const GROUP: u8 = 4;
    /// The PID index, and the thread list at the PID.
    pub const PID: u8 = 8;
    /// The process list at the PID.
    pub const TGID: u8 = 16;
    /// The cgroup lists.
    pub const CGROUP: u8 = 32;
    /// The name of each view in findings.
    pub const NAMES: [(u8, &str); 6] = [
        (TASKS, "the process list"),
        (THREADS, "its process's thread list"),
        (GROUP, "its process's thread_group list"),
        (PID, "the PID index"),
        (TGID, "its PID's process list"),
        (CGROUP, "its control group"),
    ];
}

/// The check `tasks`.
pub struct TaskCheck {
    layout: TaskLayout,
    seen: SeenTasks,
    pass: Pass,
    /// The slot of `seen` to judge next; `None` while the pass is still walking.
    judging: Option<usize>,
    suspects: Vec<SuspectTask>,
    /// The suspect to look at next.
    next_suspect: usize,
    /// Consecutive passes that could not walk the process list.
    broken_passes: u32,
}

impl TaskCheck {
    /// The check for a kernel with `profile`.
    ///
    /// # Errors
    ///
    /// [`ProfileError`] if the profile lacks something that the check needs.
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

    /// Looks at some of the suspects again and reports those that are confirmed.
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

    /// Judges one slot of `seen`.
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
            match self.pass.list_error {
                Some(error) => {
                    self.broken_passes += 1;
                    if self.broken_passes == BROKEN_PASSES {
                        found(report::damaged_list(&self.layout, error));
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
