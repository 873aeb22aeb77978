//! Suspects: repeated looks at one task.

use super::layout::TaskLayout;
use super::pass::MAX_TASKS_PER_PID;
use super::task::{Identity, TaskState};
use super::{view, CONFIRM_RECHECKS};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::walk::HashWalk;

/// Views that a walk can miss although the task's neighbours point to it: a ring beside the list.
const LISTS: u8 = view::TASKS | view::THREADS | view::GROUP;
/// Consecutive passes that must miss a task that appears linked.
const UNREACHED_PASSES: u32 = 3;
/// Looks at which a dormant task must have run on before it is judged.
const MIN_DORMANT_RUNS: u32 = 20;
/// Looks after which a dormant task is dropped.
const MAX_DORMANT_RECHECKS: u32 = 256;
/// Consecutive looks that confirm a task without a `pid` structure: an exit clears the pointer, and then the memory may
/// be about to become another task.
const DOUBTFUL_RECHECKS: u32 = 32;

/// The result of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recheck {
    /// The task is in all its views, or it is gone.
    Clear,
    /// Linux was changing the structures.
    Busy,
    /// More looks are needed.
    Unsure,
    /// Missing from these views; time to report.
    Confirmed(u8),
}

/// A task that was missing from a view.
#[derive(Clone, Copy, Debug)]
pub struct SuspectTask {
    pub identity: Identity,
    /// Lists whose walk did not reach the task in the last pass, although it appears linked.
    pub unreached: u8,
    /// Whether the task was dormant at the last look.
    pub dormant: bool,
    /// Consecutive passes with the same `unreached`.
    passes: u32,
    /// Views that the task was missing from at the last look, and the number of consecutive looks with that result.
    missing: u8,
    rechecks: u32,
    /// Consecutive looks before the next report; doubled with each report.
    report_at: u32,
    /// While dormant: run time at the last look, looks at which it had grown, and number of looks.
    run_time: u64,
    runs: u32,
    dormant_rechecks: u32,
}

/// Whether `task` is in the list of type `kind` at `pid`.
pub fn is_listed<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    pid: u64,
    kind: usize,
    task: u64,
) -> bool {
    let mut walk =
        HashWalk::new(pid.wrapping_add(layout.pid_tasks[kind]), &layout.lists, MAX_TASKS_PER_PID);
    let node = task.wrapping_add(layout.pid_links[kind]);
    while let Ok(Some(found)) = walk.next(kernel, &layout.lists) {
        if found == node {
            return true;
        }
    }
    false
}

/// The `pid` structure for PID `number` in the index.
pub fn indexed_pid<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    number: u32,
) -> Option<u64> {
    let path = layout.xarrays.path_to(kernel, layout.pid_index, number.into())?;
    (path.value != 0 && path.value & 3 == 0).then_some(path.value)
}

/// The views that must have the task and do not.
fn missing_views<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    identity: &Identity,
    task: &TaskState,
) -> u8 {
    let pid = indexed_pid(kernel, layout, identity.pid);
    let in_pid_list = |kind| pid.is_some_and(|pid| is_listed(kernel, layout, pid, kind, task.task));
    let linked = |node: u64| layout.lists.is_linked(kernel, task.task.wrapping_add(node));
    let expected = layout.expected(task.is_leader());
    let is_in = |view: u8| match view {
        view::TASKS => linked(layout.tasks),
        view::THREADS => linked(layout.thread_node),
        view::GROUP => layout.thread_group.is_some_and(linked),
        view::PID => in_pid_list(0),
        view::TGID => in_pid_list(1),
        view::CGROUP => {
            task.is_exiting() || layout.groups.is_some_and(|groups| linked(groups.node))
        }
        _ => true,
    };
    (0..8).map(|bit| 1 << bit).filter(|view| expected & view != 0 && !is_in(*view)).sum()
}

/// Whether the memory may hold the rest of an exited task, or a copy that a fork has just made of another task and that
/// still has that task's PID. Neither of them ever runs.
fn is_dormant<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    identity: &Identity,
    task: &TaskState,
) -> bool {
    let other = || {
        let pid = indexed_pid(kernel, layout, identity.pid)?;
        let node =
            kernel.u64(pid.wrapping_add(layout.pid_tasks[0]).wrapping_add(layout.lists.first))?;
        Some(node != 0 && node != task.task.wrapping_add(layout.pid_links[0]))
    };
    task.is_dead() || other().unwrap_or(false)
}

/// Judges a task that the views `bits` have; `None` if nothing is missing.
pub fn judge<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    task: u64,
    bits: u8,
) -> Option<SuspectTask> {
    let leads = kernel.u64(task.wrapping_add(layout.group_leader))? == task;
    let lacking = layout.expected(leads) & !bits;
    if lacking == 0 {
        return None;
    }
    let read = TaskState::read(kernel, layout, task)?;
    if read.is_new() || !read.is_in_use(kernel, layout) {
        return None;
    }
    let identity = Identity::read(kernel, layout, task)?;
    let missing = missing_views(kernel, layout, &identity, &read);
    let unreached = lacking & LISTS & !missing;
    (missing | unreached != 0).then_some(SuspectTask {
        identity,
        unreached,
        dormant: is_dormant(kernel, layout, &identity, &read),
        passes: 1,
        missing: 0,
        rechecks: 0,
        report_at: CONFIRM_RECHECKS,
        run_time: read.run_time,
        runs: 0,
        dormant_rechecks: 0,
    })
}

impl SuspectTask {
    /// Records that another pass did not reach the task in the lists `unreached`, although it appears linked.
    pub fn another_pass(&mut self, unreached: u8) {
        self.passes =
            if unreached != 0 && unreached == self.unreached { self.passes + 1 } else { 1 };
        self.unreached = unreached;
    }

    /// Looks at the task again. Linux must run between two calls.
    pub fn recheck<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
    ) -> Recheck {
        let Some(task) = TaskState::read(kernel, layout, self.identity.task) else {
            return Recheck::Clear;
        };
        if !self.identity.is_current(kernel, layout) || !task.is_in_use(kernel, layout) {
            return Recheck::Clear;
        }
        self.dormant = is_dormant(kernel, layout, &self.identity, &task);
        if task.is_new() {
            return Recheck::Unsure;
        }
        if self.dormant && !self.runs_on(&task) {
            return if self.dormant_rechecks >= MAX_DORMANT_RECHECKS {
                Recheck::Clear
            } else {
                Recheck::Unsure
            };
        }
        let quiet = || {
            layout.locks(layout.expected(task.is_leader())).all(|lock| lock.has_no_writer(kernel))
        };
        if !quiet() {
            return Recheck::Busy;
        }
        let mut missing = missing_views(kernel, layout, &self.identity, &task);
        let same = |again: TaskState| {
            !again.is_new() && is_dormant(kernel, layout, &self.identity, &again) == self.dormant
        };
        let again = TaskState::read(kernel, layout, self.identity.task);
        if !quiet() || !self.identity.is_current(kernel, layout) || !again.is_some_and(same) {
            return Recheck::Busy;
        }
        if missing | self.unreached == 0 {
            return Recheck::Clear;
        }
        if self.passes >= UNREACHED_PASSES {
            missing |= self.unreached;
        }
        if missing == 0 {
            return Recheck::Unsure;
        }
        if missing != self.missing {
            (self.missing, self.rechecks, self.report_at) = (missing, 0, CONFIRM_RECHECKS);
        }
        if task.pid_struct == 0 {
            self.report_at = self.report_at.max(DOUBTFUL_RECHECKS);
        }
        self.rechecks = self.rechecks.saturating_add(1);
        if self.rechecks < self.report_at {
            return Recheck::Unsure;
        }
        self.report_at = self.report_at.saturating_mul(2);
        Recheck::Confirmed(missing)
    }

    /// Whether a dormant task has run on at so many looks that these cannot be the last steps of an exit.
    fn runs_on(&mut self, task: &TaskState) -> bool {
        if self.dormant_rechecks > 0 && task.run_time != self.run_time {
            self.runs += 1;
        }
        self.run_time = task.run_time;
        self.dormant_rechecks = self.dormant_rechecks.saturating_add(1);
        self.runs >= MIN_DORMANT_RUNS
    }
}
