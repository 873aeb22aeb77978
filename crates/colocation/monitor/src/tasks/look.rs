//! A look at one task: is it where it must be, at this moment?

use super::layout::Layout;
use super::task::{Identity, Task};
use super::views::MAX_TASKS_A_NUMBER;
use super::{view, LOOKS};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::walk::HashWalk;

/// Views that a walk can miss although the task's neighbours point to it: a ring beside the list.
const LISTS: u8 = view::TASKS | view::THREADS | view::GROUP;
/// How many passes in a row must not have reached a task that looks linked.
const RING_PASSES: u32 = 3;
/// A dormant task is let alone, unless it ran on at so many looks...
const MOVES: u32 = 20;
/// ... and is forgotten after so many looks.
const DORMANT_LOOKS: u32 = 256;
/// How many looks in a row confirm where the task has no `pid` structure: an exit clears that, and then the memory may
/// be in the middle of becoming another task.
const DOUBTFUL_LOOKS: u32 = 32;

/// What a look gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// It is where it must be, or it is gone.
    Clear,
    /// Linux was changing the structures.
    Busy,
    /// Not enough looks.
    Unsure,
    /// Missing from these views, and it is time to say so.
    Confirmed(u8),
}

/// A task that lacked a view.
#[derive(Clone, Copy, Debug)]
pub struct Suspect {
    pub identity: Identity,
    /// Lists whose walk did not reach it in the last pass, although it looks linked.
    pub unreached: u8,
    /// Whether it was dormant when it was looked at last.
    pub dormant: bool,
    /// For how many passes in a row that was so.
    passes: u32,
    /// Views that it lacked at the last look, and for how many looks in a row.
    missing: u8,
    looks: u32,
    /// How many looks in a row there must be before it is reported: doubled with each report.
    report_at: u32,
    /// How long it had run at the last look, at how many looks it had run on, and how many there were, while dormant.
    run_time: u64,
    moves: u32,
    dormant_looks: u32,
}

/// Whether the list of tasks of type `kind` at the number of `pid` holds `task`.
pub fn listed<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &Layout,
    pid: u64,
    kind: usize,
    task: u64,
) -> bool {
    let mut walk =
        HashWalk::new(pid.wrapping_add(layout.pid_tasks[kind]), &layout.lists, MAX_TASKS_A_NUMBER);
    let node = task.wrapping_add(layout.links[kind]);
    while let Ok(Some(found)) = walk.next(kernel, &layout.lists) {
        if found == node {
            return true;
        }
    }
    false
}

/// The `pid` structure that the index has for `number`.
pub fn indexed<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &Layout,
    number: u32,
) -> Option<u64> {
    let way = layout.xarrays.way(kernel, layout.pids, number.into())?;
    (way.value != 0 && way.value & 3 == 0).then_some(way.value)
}

/// Of the views that a task must be in, those that it is not in.
fn missing<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &Layout,
    identity: &Identity,
    task: &Task,
) -> u8 {
    let pid = indexed(kernel, layout, identity.pid);
    let numbered = |kind| pid.is_some_and(|pid| listed(kernel, layout, pid, kind, task.task));
    let linked = |node: u64| layout.lists.linked(kernel, task.task.wrapping_add(node));
    let expected = layout.expected(task.leads());
    let is_in = |view: u8| match view {
        view::TASKS => linked(layout.tasks),
        view::THREADS => linked(layout.thread_node),
        view::GROUP => layout.thread_group.is_some_and(linked),
        view::PID => numbered(0),
        view::TGID => numbered(1),
        view::CGROUP => task.leaving() || layout.groups.is_some_and(|groups| linked(groups.node)),
        _ => true,
    };
    (0..8).map(|bit| 1 << bit).filter(|view| expected & view != 0 && !is_in(*view)).sum()
}

/// Whether the memory may hold what is left of a task, or what a fork has just copied from another: that one's number
/// is in it then, until the copy gets its own. Neither ever runs.
fn dormant<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &Layout,
    identity: &Identity,
    task: &Task,
) -> bool {
    let other = || {
        let pid = indexed(kernel, layout, identity.pid)?;
        let node =
            kernel.u64(pid.wrapping_add(layout.pid_tasks[0]).wrapping_add(layout.lists.first))?;
        Some(node != 0 && node != task.task.wrapping_add(layout.links[0]))
    };
    task.dead() || other().unwrap_or(false)
}

/// Judges a task that a pass has seen in the views `bits`; `None` where nothing is odd.
pub fn judge<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &Layout,
    task: u64,
    bits: u8,
) -> Option<Suspect> {
    let leads = kernel.u64(task.wrapping_add(layout.group_leader))? == task;
    let lacking = layout.expected(leads) & !bits;
    if lacking == 0 {
        return None;
    }
    let read = Task::read(kernel, layout, task)?;
    if read.newborn() || !read.in_use(kernel, layout) {
        return None;
    }
    let identity = Identity::read(kernel, layout, task)?;
    let missing = missing(kernel, layout, &identity, &read);
    let unreached = lacking & LISTS & !missing;
    (missing | unreached != 0).then_some(Suspect {
        identity,
        unreached,
        dormant: dormant(kernel, layout, &identity, &read),
        passes: 1,
        missing: 0,
        looks: 0,
        report_at: LOOKS,
        run_time: read.run_time,
        moves: 0,
        dormant_looks: 0,
    })
}

impl Suspect {
    /// Another pass did not reach the task in these lists, although it looks linked.
    pub fn another_pass(&mut self, unreached: u8) {
        self.passes =
            if unreached != 0 && unreached == self.unreached { self.passes + 1 } else { 1 };
        self.unreached = unreached;
    }

    /// Looks again. Call it once while Linux stands still.
    pub fn look<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, layout: &Layout) -> Look {
        let Some(task) = Task::read(kernel, layout, self.identity.task) else { return Look::Clear };
        if !self.identity.holds(kernel, layout) || !task.in_use(kernel, layout) {
            return Look::Clear;
        }
        self.dormant = dormant(kernel, layout, &self.identity, &task);
        if task.newborn() {
            return Look::Unsure;
        }
        if self.dormant && !self.runs_on(&task) {
            return if self.dormant_looks >= DORMANT_LOOKS { Look::Clear } else { Look::Unsure };
        }
        let quiet = || layout.locks(layout.expected(task.leads())).all(|lock| lock.quiet(kernel));
        if !quiet() {
            return Look::Busy;
        }
        let mut missing = missing(kernel, layout, &self.identity, &task);
        let same = |again: Task| {
            !again.newborn() && dormant(kernel, layout, &self.identity, &again) == self.dormant
        };
        let again = Task::read(kernel, layout, self.identity.task);
        if !quiet() || !self.identity.holds(kernel, layout) || !again.is_some_and(same) {
            return Look::Busy;
        }
        if missing | self.unreached == 0 {
            return Look::Clear;
        }
        if self.passes >= RING_PASSES {
            missing |= self.unreached;
        }
        if missing == 0 {
            return Look::Unsure;
        }
        if missing != self.missing {
            (self.missing, self.looks, self.report_at) = (missing, 0, LOOKS);
        }
        if task.number == 0 {
            self.report_at = self.report_at.max(DOUBTFUL_LOOKS);
        }
        self.looks = self.looks.saturating_add(1);
        if self.looks < self.report_at {
            return Look::Unsure;
        }
        self.report_at = self.report_at.saturating_mul(2);
        Look::Confirmed(missing)
    }

    /// Whether a dormant task was seen to run on, at so many looks that it cannot be its last steps.
    fn runs_on(&mut self, task: &Task) -> bool {
        if self.dormant_looks > 0 && task.run_time != self.run_time {
            self.moves += 1;
        }
        self.run_time = task.run_time;
        self.dormant_looks = self.dormant_looks.saturating_add(1);
        self.moves >= MOVES
    }
}
