//! Suspects: repeated looks at one task.

use super::layout::TaskLayout;
use super::pass::MAX_TASKS_PER_PID;
use super::task::{pid_number, Identity, TaskState};
use super::{view, CONFIRM_RECHECKS};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::walk::HashWalk;

/// Views that a walk can miss although the task's neighbours point to it: a ring beside the list.
const LISTS: u8 = view::TASKS | view::THREADS | view::GROUP;
/// Consecutive passes that must miss a task that appears linked.
const UNREACHED_PASSES: u32 = 3;
/// Looks at which an excused task must have run on before it is judged.
const MIN_RUNS: u32 = 20;
/// Passes that must reach a task whose PID leads to another one, or meet what claims to be dead or has no process in a
/// list, before it is judged: Linux has no such task in a list for long.
const REACHED_PASSES: u32 = 6;
/// Looks after which memory that never runs, and that a whole pass did not reach, is dropped.
const MAX_REMAINS_RECHECKS: u32 = 1024;
/// Looks after which a task that claims to be new is judged: no fork takes that long.
const MAX_NEW_RECHECKS: u32 = 4096;
/// Consecutive looks that confirm a task in doubt: one without an intact `pid` structure (an exit clears the pointer,
/// and then the memory may be about to become another task), one whose identity keeps changing, and one whose locks are
/// always held.
const DOUBTFUL_RECHECKS: u32 = 32;
/// Changes of identity after which further ones count no longer: memory is not reused for another incomplete task that
/// often.
const MAX_CHANGES: u32 = 16;
/// Looks in a row at which a lock was held, after which it no longer matters: no update takes that long.
const BUSY_PATIENCE: u32 = 64;
/// Why a task is not put back.
const STRAY: &str = "its signal structure and its first thread are not of one process";
const REMAINS: &str = "it looks like the rest of an exited task";
/// Looks after which a suspect that is neither clear nor confirmed is dropped.
const MAX_UNRESOLVED: u32 = 2 * MAX_NEW_RECHECKS;

/// The result of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recheck {
    /// The task is in all its views, or it is gone.
    Clear,
    /// Linux was changing the structures.
    Busy,
    /// More looks are needed.
    Unsure,
    /// Many looks did not settle it.
    Unresolved,
    /// Missing from these views; time to report.
    Confirmed(u8),
}

/// Why a task may be missing from a view, for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excuse {
    None,
    /// It claims that its fork is unfinished.
    New,
    /// It claims to be dead, but is not.
    FalselyDead,
    /// The memory may hold the rest of an exited task. That never runs, nor stays in a list.
    Remains,
    /// It and the first thread that it leads to are not of one process: the memory may hold anything. Only a task runs,
    /// or stays in a list.
    Stray,
    /// Its PID leads to another task: the memory may hold the rest of an exited task, or a copy that a fork has just
    /// made and that still has its parent's PID. Neither of them ever runs, nor stays in a list.
    Reused,
}

/// A task that was missing from a view.
#[derive(Clone, Copy, Debug)]
pub struct SuspectTask {
    pub identity: Identity,
    /// Lists whose walk did not reach the task in the last pass, although it appears linked.
    pub unreached: u8,
    /// The views that the last pass saw it in.
    pub seen_in: u8,
    excuse: Excuse,
    /// Whether it has been reported.
    pub reported: bool,
    /// Consecutive passes with the same `unreached`.
    passes: u32,
    /// Views that the task was missing from at the last look, and the number of consecutive looks with that result.
    missing: u8,
    rechecks: u32,
    /// Consecutive looks before the next report; doubled with each report.
    report_at: u32,
    /// Looks since the last report, or since the beginning.
    unresolved: u32,
    /// Changes of identity, and looks in a row at which Linux held a lock.
    changes: u32,
    busy: u32,
    /// While excused: run time at the last look, looks at which it ran on, and number of looks.
    run_time: u64,
    runs: u32,
    excused: u32,
    /// Passes that reached it with this identity, and whether the last whole pass or the present one did.
    reached: u32,
    reached_lately: (bool, bool),
    /// Passes in a row that reached it by a list, and whether the present one did.
    listed: u32,
    is_listed: bool,
}

/// Whether a pass that saw a task in the views `bits` met it in a list, or as the first thread of one in a list.
fn is_by_list(bits: u8) -> bool {
    bits & !view::QUEUE != 0
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

/// Whether `task` is the first one in the list of type `kind` at `pid`: Linux looks at no other.
fn is_first<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    pid: u64,
    kind: usize,
    task: u64,
) -> bool {
    let first = pid.wrapping_add(layout.pid_tasks[kind]).wrapping_add(layout.lists.first);
    kernel.u64(first) == Some(task.wrapping_add(layout.pid_links[kind]))
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
    let indexed = indexed_pid(kernel, layout, identity.pid);
    let pid = indexed.filter(|pid| *pid == task.pid_struct);
    let in_pid_list = |kind| pid.is_some_and(|pid| is_first(kernel, layout, pid, kind, task.task));
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

/// What excuses a task that is missing from a view.
pub fn excuse<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    identity: &Identity,
    task: &TaskState,
) -> Excuse {
    if !task.is_in_use(kernel, layout) {
        return Excuse::Stray;
    }
    let other = || {
        let pid = indexed_pid(kernel, layout, identity.pid)?;
        let node =
            kernel.u64(pid.wrapping_add(layout.pid_tasks[0]).wrapping_add(layout.lists.first))?;
        Some(node != 0 && node != task.task.wrapping_add(layout.pid_links[0]))
    };
    if other().unwrap_or(false) {
        return if task.is_dead() { Excuse::Remains } else { Excuse::Reused };
    }
    match task {
        _ if task.is_falsely_dead() => Excuse::FalselyDead,
        _ if task.is_dead() => Excuse::Remains,
        _ if task.is_new() => Excuse::New,
        _ => Excuse::None,
    }
}

/// Of a task that the views `bits` have: the views that must have it and do not, and the lists whose walk did not reach
/// it although it appears linked; `None` if there are none. In views that are `incomplete`, the walk proves nothing.
pub fn lacking<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    identity: &Identity,
    task: &TaskState,
    bits: u8,
    incomplete: u8,
) -> Option<(u8, u8)> {
    let lacking = layout.expected(task.is_leader()) & !bits;
    if lacking == 0 {
        return None;
    }
    let missing = missing_views(kernel, layout, identity, task);
    // A task that no list of all tasks had has begun behind these walks, or the PID index lacks it.
    let is_listed = bits & view::LISTED != 0;
    let unreached = if is_listed { lacking & LISTS & !missing & !incomplete } else { 0 };
    (missing | unreached != 0).then_some((missing, unreached))
}

/// Judges a task that the views `bits` have; `None` if nothing is missing. In views that are `incomplete`, the walk
/// proves nothing.
pub fn judge<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TaskLayout,
    task: u64,
    bits: u8,
    incomplete: u8,
) -> Option<SuspectTask> {
    // Most tasks lack nothing: that costs one read.
    let leads = kernel.u64(task.wrapping_add(layout.group_leader))? == task;
    if layout.expected(leads) & !bits == 0 || task == layout.init_task {
        return None;
    }
    // No task runs without this.
    let read = TaskState::read(kernel, layout, task).filter(|read| read.signal != 0)?;
    let identity = Identity::read(kernel, layout, task)?;
    let (_, unreached) = lacking(kernel, layout, &identity, &read, bits, incomplete)?;
    Some(SuspectTask {
        identity,
        unreached,
        seen_in: bits,
        excuse: excuse(kernel, layout, &identity, &read),
        reported: false,
        passes: 1,
        missing: 0,
        rechecks: 0,
        report_at: CONFIRM_RECHECKS,
        unresolved: 0,
        changes: 0,
        busy: 0,
        run_time: read.run_time,
        runs: 0,
        excused: 0,
        reached: 1,
        reached_lately: (true, true),
        listed: u32::from(is_by_list(bits)),
        is_listed: is_by_list(bits),
    })
}

impl SuspectTask {
    /// Whether something excused the task at the last look.
    pub fn is_excused(&self) -> bool {
        self.excuse != Excuse::None
    }

    /// Whether it has no process, at the last look.
    pub fn is_stray(&self) -> bool {
        self.excuse == Excuse::Stray
    }

    /// Why it is not to be put back: it may be no task.
    pub fn held(&self) -> Option<&'static str> {
        match self.excuse {
            Excuse::Stray => Some(STRAY),
            Excuse::Remains if self.runs < MIN_RUNS => Some(REMAINS),
            _ => None,
        }
    }

    /// Records another pass, which saw the task in the views `bits` and did not reach it in the lists `unreached`,
    /// although it appears linked.
    pub fn another_pass(&mut self, bits: u8, unreached: u8) {
        self.seen_in = bits;
        self.passes =
            if unreached != 0 && unreached == self.unreached { self.passes + 1 } else { 1 };
        self.unreached = unreached;
        self.reached = self.reached.saturating_add(1);
        self.reached_lately.1 = true;
        self.is_listed = is_by_list(bits);
        self.listed = self.listed.saturating_add(u32::from(self.is_listed));
    }

    /// Records that a pass is over, which reached the task or did not.
    pub fn pass_ended(&mut self) {
        self.reached_lately = (self.reached_lately.1, false);
        if !core::mem::take(&mut self.is_listed) {
            self.listed = 0;
        }
    }

    /// Looks at the task again. Linux must run between two calls.
    pub fn recheck<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
    ) -> Recheck {
        let task = self.identity.task;
        let (Some(state), Some(identity)) =
            (TaskState::read(kernel, layout, task), Identity::read(kernel, layout, task))
        else {
            return Recheck::Clear;
        };
        let is_rest = !self.is_stray() && !state.is_in_use(kernel, layout);
        if is_rest || state.signal == 0 {
            return Recheck::Clear;
        }
        self.unresolved += 1;
        if identity != self.identity {
            self.identity = identity;
            self.another_identity();
        }
        self.excuse = excuse(kernel, layout, &identity, &state);
        let looked = match self.excuse {
            Excuse::None => Recheck::Confirmed(0),
            _ => self.look_at_excused(&state),
        };
        let looked = match looked {
            Recheck::Confirmed(_) => self.look(kernel, layout, &state),
            other => other,
        };
        match looked {
            Recheck::Confirmed(_) => (self.reported, self.unresolved) = (true, 0),
            Recheck::Busy | Recheck::Unsure if self.unresolved >= MAX_UNRESOLVED => {
                return Recheck::Unresolved
            }
            _ => {}
        }
        looked
    }

    /// The memory may belong to another task now. An attacker may as well have written into it.
    fn another_identity(&mut self) {
        self.changes = self.changes.saturating_add(1);
        if self.changes <= MAX_CHANGES {
            (self.rechecks, self.runs, self.excused) = (0, 0, 0);
            (self.passes, self.unreached, self.reached, self.listed) = (0, 0, 0, 0);
        }
    }

    /// Looks at a task with an excuse: `Confirmed` if the excuse no longer holds.
    fn look_at_excused(&mut self, task: &TaskState) -> Recheck {
        // Other tasks in the same memory have other run times: some of them smaller.
        if task.run_time < self.run_time {
            self.runs = 0;
        }
        let ran = self.excused > 0 && task.run_time > self.run_time;
        let claims = matches!(self.excuse, Excuse::New | Excuse::FalselyDead);
        self.runs += u32::from(ran || claims && task.is_queued());
        self.run_time = task.run_time;
        self.excused = self.excused.saturating_add(1);
        let limit = match self.excuse {
            Excuse::None => 0,
            Excuse::FalselyDead => DOUBTFUL_RECHECKS,
            Excuse::New => MAX_NEW_RECHECKS,
            Excuse::Remains | Excuse::Reused | Excuse::Stray => u32::MAX,
        };
        let stays = match self.excuse {
            Excuse::Reused => self.reached >= REACHED_PASSES,
            Excuse::Remains | Excuse::Stray => self.listed >= REACHED_PASSES,
            _ => false,
        };
        // What runs is met in a run queue; other memory may hold a number that grows.
        let is_met = self.excuse != Excuse::Stray || self.reached >= REACHED_PASSES;
        if self.runs >= MIN_RUNS && is_met || self.excused >= limit || stays {
            Recheck::Confirmed(0)
        } else if !claims
            && self.excused >= MAX_REMAINS_RECHECKS
            && self.reached_lately == (false, false)
        {
            Recheck::Clear
        } else {
            Recheck::Unsure
        }
    }

    /// Looks at a task that nothing excuses.
    fn look<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TaskLayout,
        task: &TaskState,
    ) -> Recheck {
        let free = |views| layout.locks(views).all(|lock| lock.has_no_writer(kernel));
        let all = layout.expected(task.is_leader());
        let was_free = free(all);
        let missing = missing_views(kernel, layout, &self.identity, task);
        if missing | self.unreached == 0 {
            return Recheck::Clear;
        }
        let again = TaskState::read(kernel, layout, task.task);
        let same = again.is_some_and(|again| {
            excuse(kernel, layout, &self.identity, &again) == self.excuse
                && Identity::read(kernel, layout, task.task) == Some(self.identity)
        });
        if !same {
            return Recheck::Busy;
        }
        if !was_free || !free(all) {
            self.busy = self.busy.saturating_add(1);
            if self.busy < BUSY_PATIENCE {
                return Recheck::Busy;
            }
        } else {
            self.busy = 0;
        }
        let unreached = if self.passes >= UNREACHED_PASSES { self.unreached } else { 0 };
        let has_pid = pid_number(kernel, layout, task.pid_struct) == Some(self.identity.pid);
        self.count(missing | unreached, has_pid)
    }

    /// Counts a look at which the task was missing from `missing`; `has_pid`: its `pid` structure is intact.
    fn count(&mut self, missing: u8, has_pid: bool) -> Recheck {
        if missing == 0 {
            return Recheck::Unsure;
        }
        if missing != self.missing {
            (self.missing, self.rechecks) = (missing, 0);
            self.report_at = CONFIRM_RECHECKS;
        }
        let in_doubt = !has_pid || self.changes > MAX_CHANGES || self.busy >= BUSY_PATIENCE;
        if in_doubt {
            self.report_at = self.report_at.max(DOUBTFUL_RECHECKS);
        }
        self.rechecks = self.rechecks.saturating_add(1);
        if self.rechecks < self.report_at {
            return Recheck::Unsure;
        }
        self.report_at = self.report_at.saturating_mul(2);
        Recheck::Confirmed(missing)
    }
}
